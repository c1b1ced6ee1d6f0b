// The other experiments draw what they promise, and their words have the plots' numbers.
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/evaluation/experiments/ablation.h"
#include "client/evaluation/experiments/alignment.h"
#include "client/evaluation/experiments/all.h"
#include "client/evaluation/experiments/bounded_gaussian.h"
#include "client/evaluation/experiments/convergence.h"
#include "client/evaluation/experiments/inference_privacy.h"
#include "client/evaluation/experiments/recall.h"
#include "client/evaluation/experiments/settings.h"
#include "client/evaluation/figure_parts.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Alignment, BringsTheAnchorsToTheServers) {
  const std::vector<Figure> figures =
      FiguresOf(MakeAlignmentExperiment(SmallStage()), SmallStudy());
  ASSERT_EQ(figures.size(), 1u);
  ExpectSound(figures[0]);
  ASSERT_EQ(figures[0].panels.size(), 5u);  // the server's, and two for each epsilon
  const std::vector<FigurePoint>& server = figures[0].panels[0].series[0].points;
  const auto distance = [&](size_t panel) {
    double sum = 0;
    const auto& dots = SeriesNamed(figures[0].panels[panel], "anchors").points;
    EXPECT_EQ(dots.size(), server.size());
    for (size_t i = 0; i < dots.size(); ++i) {
      EXPECT_EQ(dots[i].group, server[i].group);
      sum += std::hypot(dots[i].x - server[i].x, dots[i].y - server[i].y);
    }
    return sum;
  };
  EXPECT_LT(distance(4), distance(3));
  EXPECT_EQ(server.size(), 40u);  // 10 of 20 classes, 4 anchors each
  std::set<int32_t> classes;
  for (const FigurePoint& dot : server) classes.insert(dot.group);
  EXPECT_THAT(classes, ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16, 18));
  EXPECT_THAT(figures[0].words[0], HasSubstr("At epsilon 0.1 the anchors' residual"));
  // The target's slot is one of the slots, and marked.
  for (size_t panel = 1; panel < 5; ++panel) {
    const auto& target = SeriesNamed(figures[0].panels[panel], "the target's slot").points;
    ASSERT_EQ(target.size(), 1u);
    const auto& slots = SeriesNamed(figures[0].panels[panel], "slots").points;
    EXPECT_TRUE(std::any_of(slots.begin(), slots.end(), [&](const FigurePoint& slot) {
      return slot.group == target[0].group && slot.x == target[0].x && slot.y == target[0].y;
    }));
  }
}

// So many iterations at such an alpha leave one direction: every anchor on a line.
TEST(Alignment, CountsReleasesThatCannotBeAligned) {
  Study study = SmallStudy();
  study.settings.alpha = 1e9;
  study.settings.steps = 1000;
  const std::vector<Figure> figures =
      FiguresOf(MakeAlignmentExperiment(std::make_shared<Stage>(study)), study);
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_TRUE(figures[0].panels.empty());
  ASSERT_EQ(figures[0].words.size(), 2u);
  EXPECT_THAT(figures[0].words[0],
              StartsWith("At epsilon 0.1 2 of 2 releases could not be made or aligned (alignment"));
}

TEST(Alignment, CallsClassesByTheirNames) {
  Study study = SmallStudy();
  for (int i = 0; i < 20; ++i) study.data.class_names.push_back(absl::StrCat("bird ", i));
  const auto figures = FiguresOf(MakeAlignmentExperiment(std::make_shared<Stage>(study)), study);
  EXPECT_EQ(figures.at(0).class_names.at(14), "bird 14");
  EXPECT_EQ(figures.at(0).class_names.size(), 10u);
}

TEST(InferencePrivacy, HasEveryMechanismTwoQuantitiesAndAFamilyOfRadii) {
  const std::vector<Figure> figures =
      FiguresOf(MakeInferencePrivacyExperiment(SmallStage()), SmallStudy());
  ASSERT_EQ(figures.size(), 3u);
  for (const Figure& figure : figures) {
    ExpectSound(figure);
    std::vector<std::string> lines = {"lap-output", "gauss-output", "gauss-input",
                                      "anchored, lap-output", "anchored, gauss-output"};
    if (figure.id == "inference-privacy-radii") {
      lines = {"gauss-output, radius 0.1", "gauss-output, radius 0.2", "gauss-output, radius 0.5",
               "gauss-output, radius 1"};
    }
    lines.emplace_back("without noise");
    EXPECT_EQ(NamesOf(figure.panels[0]), lines);
    EXPECT_THAT(Joined(figure.words),
                HasSubstr(Short(figure.panels[0].series[0].points[0].y) + " ("));
  }
  EXPECT_EQ(figures[0].panels[0].series[0].points.size(), 6u);
  EXPECT_EQ(figures[1].panels[0].series[0].points.size(), 2u);
}

// Table 1 of the document, whose fixed points were solved again in Python (golden.json).
TEST(BoundedGaussian, PrintsTheDocumentsVariances) {
  const std::vector<Figure> figures = FiguresOf(MakeBoundedGaussianExperiment(1e-5), SmallStudy());
  ASSERT_EQ(figures.size(), 1u);
  ExpectSound(figures[0]);
  const FigureSeries& printed = SeriesNamed(figures[0].panels[0], "bounded, as published");
  const FigureSeries& exact = SeriesNamed(figures[0].panels[0], "bounded, exact");
  const std::vector<std::pair<double, double>> table = {
      {.1, 857.518165}, {.5, 170.274489}, {1, 84.384433}, {1.5, 55.767954},
      {2, 41.471374},   {2.5, 32.903753}, {3, 27.201260}};
  for (const auto& [epsilon, variance] : table) {
    size_t i = 0;
    while (printed.points[i].x != epsilon) ++i;
    EXPECT_NEAR(printed.points[i].y, variance, 1e-5 * variance) << epsilon;
    EXPECT_LT(exact.points[i].y, printed.points[i].y);
  }
  EXPECT_THAT(figures[0].words[0], HasSubstr(Short(exact.points[0].y)));
  EXPECT_THAT(figures[0].words[0], Not(HasSubstr("not proven")));
  EXPECT_THAT(figures[0].words[1], HasSubstr("not proven from epsilon 1 on"));
}

TEST(BoundedGaussian, PrintsTheVariancesThatTheDocumentComparesWith) {
  const std::vector<Figure> figures = FiguresOf(MakeBoundedGaussianExperiment(1e-5), SmallStudy());
  const FigureSeries& generalised =
      SeriesNamed(figures.at(0).panels[0], "generalised Gaussian, as published");
  const std::map<double, double> table = {{.1, 1320}, {.5, 264},   {1, 132}, {1.5, 88},
                                          {2, 66},    {2.5, 52.8}, {3, 44}};
  size_t found = 0;
  for (const FigurePoint& point : generalised.points) {
    const auto row = table.find(point.x);
    if (row == table.end()) continue;
    ++found;
    EXPECT_NEAR(point.y, row->second, 1e-9) << point.x;
  }
  EXPECT_EQ(found, table.size());
}

TEST(Studies, NameTheEpsilonThatNoMechanismTakes) {
  const auto code = absl::StatusCode::kInvalidArgument;
  for (const double epsilon : {1e-7, 2e6, std::nan("")}) {
    Study study = SmallStudy();
    study.epsilons = {epsilon};
    EXPECT_THAT(Validate(study), FailsWith(code, "--epsilons must be between 1e-06 and 1e+06"));
    study = SmallStudy();
    study.epsilon = epsilon;
    EXPECT_THAT(Validate(study), FailsWith(code, "--epsilon must be between 1e-06 and 1e+06"));
  }
  Study study = SmallStudy();
  study.epsilons = {1e-6, 1e6};
  EXPECT_THAT(Validate(study), IsOk());
  study.delta = 1e-310;
  EXPECT_THAT(Validate(study), FailsWith(code, "--delta must be between"));
}

// What one figure says of a condition is what another says of the same.
TEST(Experiments, AgreeAboutACondition) {
  Study study = SmallStudy();
  study.epsilons = {study.epsilon};
  const auto stage = std::make_shared<Stage>(study);
  const auto fidelity = [&](const Figure& figure, size_t panel, const std::string& series,
                            double x) {
    for (const FigurePoint& point : SeriesNamed(figure.panels.at(panel), series).points) {
      if (point.x == x) return point.y;
    }
    return std::nan("");
  };
  const auto first = [&](const Experiment& experiment) {
    return FiguresOf(experiment, study).at(0);
  };
  const auto recall = FiguresOf(MakeRecallExperiment(stage, {}), study);
  const double score = fidelity(recall.at(2), 0, "PrivateMail, gaussian", 1);
  EXPECT_LT(score, 1);
  EXPECT_EQ(
      fidelity(first(MakeSettingsExperiment(stage)), 2, "epsilon 1", study.settings.embedding_dim),
      score);
  EXPECT_EQ(fidelity(first(MakeConvergenceExperiment(stage)), 2, "epsilon 1", study.settings.steps),
            score);
  EXPECT_EQ(fidelity(first(MakeAblationExperiment(stage)), 2, "epsilon 1", 0), score);
}

TEST(Experiments, AreFoundByName) {
  const auto names = [](absl::string_view wanted, bool attacks) {
    std::vector<std::string> found;
    const auto experiments = MakeExperiments(SmallStage(), wanted, attacks, {});
    for (const Experiment& one : *experiments) found.push_back(one.name);
    return found;
  };
  EXPECT_THAT(names("ablation", false), ElementsAre("ablation"));
  EXPECT_THAT(names("ablation", true), ElementsAre("ablation", "attacks"));
  EXPECT_THAT(names("", false),
              ElementsAre("recall", "cells", "ablation", "convergence", "settings",
                          "alignment", "inference-privacy", "bounded-gaussian"));
  EXPECT_EQ(absl::StrJoin(names("", true), ", "), ExperimentNames());
  EXPECT_THAT(MakeExperiments(SmallStage(), "recal", false, {}),
              FailsWith(absl::StatusCode::kInvalidArgument, "but has \"recal\""));
}

}  // namespace
}  // namespace privatemail::client
