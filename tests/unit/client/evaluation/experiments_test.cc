#include "client/evaluation/experiments/experiments.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/evaluation/sweep.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

TEST(Ablation, TellsWhatTheLabelAloneGives) {
  const std::vector<Figure> figures = FiguresOf(MakeAblationExperiment(SmallStage()), SmallStudy());
  ASSERT_EQ(figures.size(), 1u);
  const Figure& figure = figures[0];
  ExpectSound(figure);
  EXPECT_THAT(
      figure.x.categories,
      IsSupersetOf({"as it is", "random feature", "wrong label", "without slots",
                    "label graph kernel with alpha 0.6", "label graph one-hot with alpha 0.6",
                    "kernel over s", "kernel over s^2"}));
  const FigureSeries& bars = SeriesNamed(figure.panels[0], "epsilon 1");
  ASSERT_EQ(bars.points.size(), figure.x.categories.size());
  // The scheme finds classes by their labels: without the feature it finds them, with a wrong label
  // it does not.
  EXPECT_GT(bars.points[0].y, .8);
  EXPECT_GT(bars.points[1].y, .8);
  EXPECT_LT(bars.points[2].y, .3);
  const double share =
      (bars.points[1].y - bars.points[2].y) / (bars.points[0].y - bars.points[2].y);
  // Of the fidelity it gives nothing that could be told apart from chance.
  EXPECT_THAT(figure.words[0],
              StartsWith("The label alone gives " + Short(share) +
                         " (the same each time, so that there is no interval) of what recall@4"));
  EXPECT_THAT(figure.words[2],
              StartsWith("What the label alone gives of fidelity@4 cannot be said from"));
}

// Over s^2, unit vectors that point away from each other have an affinity so small at this
// bandwidth that noise which hides everything fits no float.
TEST(Ablation, DropsAKernelWithWhichNothingCanBeProven) {
  Study study = SmallStudy();
  study.settings.kernel_bandwidth = .2;
  const std::vector<Figure> figures =
      FiguresOf(MakeAblationExperiment(std::make_shared<Stage>(study)), study);
  ASSERT_EQ(figures.size(), 1u);
  const std::string words = Joined(figures[0].words);
  EXPECT_THAT(words, HasSubstr("Not measured: \"kernel over s^2\" at 1 (values of up to"));
  EXPECT_THAT(words, HasSubstr("With kernel over s^2, recall@4 is not known instead of "));
  const FigurePanel& panel = figures[0].panels[0];
  const auto& categories = figures[0].x.categories;
  const auto bar = static_cast<size_t>(
      std::find(categories.begin(), categories.end(), "kernel over s^2") - categories.begin());
  ASSERT_LT(bar, categories.size());
  EXPECT_TRUE(std::isnan(SeriesNamed(panel, "epsilon 1").points[bar].y));
  EXPECT_FALSE(std::isnan(SeriesNamed(panel, "without noise").points[bar].y));
  EXPECT_FALSE(std::isnan(SeriesNamed(panel, "epsilon 1").points[0].y));
}

TEST(Ablation, DoesNotTakeChanceForTheLabels) {
  const Experiment experiment = MakeAblationExperiment(SmallStage());
  const auto words = [&](double as_it_is, double random, double wrong) {
    const auto figures = experiment.draw(PlantedResults(
        experiment,
        {{"as it is at", as_it_is}, {"random feature at", random}, {"wrong label at", wrong}}));
    return figures.ok() ? figures->at(0).words[0] : std::string(figures.status().message());
  };
  EXPECT_THAT(
      words(.9, .5, .1),
      StartsWith(
          "The label alone gives 0.5 (the same each time, so that there is no interval) of what"));
  EXPECT_THAT(words(.9, .1, .1), StartsWith("The label alone gives 0 (the same each time"));
  EXPECT_THAT(words(.1, .1, .1), StartsWith("What the label alone gives of recall@4 cannot be"));
}

TEST(Notes, CountWhatWasNotAnsweredByCondition) {
  const Experiment experiment = MakeAblationExperiment(SmallStage());
  std::vector<JobResult> results = PlantedResults(experiment, {});
  for (size_t i = 0; i < results.size(); ++i) {
    if (experiment.jobs[i].key.rfind("wrong label", 0) == 0) results[i]["unanswered"] = {20};
    if (experiment.jobs[i].key.rfind("random feature at 1, seed 1", 0) == 0) {
      results[i]["unanswered"] = {3};
    }
    if (experiment.jobs[i].key.rfind("kernel over s^2", 0) == 0) {
      results[i]["unanswered"] = {20};
      results[i]["not_built"] = {1};
    }
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Figure> figures, experiment.draw(results));
  const std::string words = Joined(figures[0].words);
  // With and without noise, 2 splits of 20 targets.
  EXPECT_THAT(words, HasSubstr("finding nothing: 3 of 80 of \"random feature\", 80 of 80 of "
                               "\"wrong label\"."));
  EXPECT_THAT(words, HasSubstr("out of 4 settings and splits each, these are 4 of \"kernel over "
                               "s^2\"."));
  ASSERT_OK_AND_ASSIGN(const std::vector<Figure> all_answered,
                       experiment.draw(PlantedResults(experiment, {})));
  EXPECT_THAT(Joined(all_answered[0].words), Not(HasSubstr("finding nothing")));
  EXPECT_THAT(Joined(all_answered[0].words), Not(HasSubstr("refuses")));
}

using testing::ElementsAre;

TEST(Convergence, DrawsScoresAndObjective) {
  const std::vector<Figure> figures =
      FiguresOf(MakeConvergenceExperiment(SmallStage()), SmallStudy());
  ASSERT_EQ(figures.size(), 2u);
  ExpectSound(figures[0]);
  EXPECT_THAT(NamesOf(figures[0].panels[0]), ElementsAre("epsilon 1", "without noise", "chance"));
  ExpectSound(figures[1]);
  const std::vector<FigurePoint>& objective = figures[1].panels[0].series[0].points;
  EXPECT_EQ(objective.size(), 15u);
  EXPECT_THAT(figures[1].words[3], HasSubstr(Short(objective[4].y) + " after iteration 5"));
  EXPECT_THAT(figures[1].words[4], HasSubstr("from the least to the greatest of 2 runs"));
}

// Two runs of 15 iterations: one falls by 2 in each, the other by 1 but for `rises`, by 1. Their
// mean falls in every iteration.
TEST(Convergence, SaysOfAnyRunWhetherItRose) {
  const Experiment experiment = MakeConvergenceExperiment(SmallStage());
  const auto sentence = [&](int rises) {
    std::vector<JobResult> results = PlantedResults(experiment, {});
    std::vector<double> falling = {100};
    std::vector<double> rising = {100};
    for (int i = 1; i < 15; ++i) {
      falling.push_back(falling.back() - 2);
      rising.push_back(rising.back() + (i <= rises ? 1 : -1));
    }
    results[results.size() - 2] = {{"as_defined", falling}, {"scaled", falling}};
    results[results.size() - 1] = {{"as_defined", falling}, {"scaled", rising}};
    const auto figures = experiment.draw(results);
    return figures.ok() ? figures->at(1).words[1] : std::string(figures.status().message());
  };
  EXPECT_THAT(sentence(0), HasSubstr("never rose in 28 iterations of 2 runs"));
  EXPECT_THAT(sentence(1), HasSubstr("is not monotone: it rose in 1 of 28 iterations of 2 runs"));
}

// The distance graph weighs with the labels' span: an iterate grows by a factor of about 1e14.
Study OverflowingStudy() {
  Study study = SmallStudy();
  study.settings.alpha = 1e9;
  study.settings.start_stddev = 1e10;
  for (int32_t& label : study.data.labels) label *= 100000;
  return study;
}

TEST(Convergence, EndsTheObjectiveWhereItIsNoNumber) {
  const Study study = OverflowingStudy();
  const std::vector<Figure> figures =
      FiguresOf(MakeConvergenceExperiment(std::make_shared<Stage>(study)), study);
  ASSERT_EQ(figures.size(), 2u);
  const std::vector<FigurePoint>& objective = figures[1].panels[0].series[0].points;
  ASSERT_LT(objective.size(), 15u);
  for (const FigurePoint& point : objective) EXPECT_TRUE(std::isfinite(point.y));
  EXPECT_THAT(Joined(figures[1].words),
              HasSubstr("After iteration " + std::to_string(objective.size()) +
                        " the objective of a run is no finite number"));
}

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

TEST(BoundedGaussian, DrawsWhatTheCalibrationsGive) {
  const std::vector<Figure> figures = FiguresOf(MakeBoundedGaussianExperiment(1e-5), SmallStudy());
  ASSERT_EQ(figures.size(), 1u);
  ExpectSound(figures[0]);
  const FigurePanel& panel = figures[0].panels[0];
  const FigurePoint& printed = SeriesNamed(panel, "bounded, as published").points[0];
  const FigurePoint& exact = SeriesNamed(panel, "bounded, exact").points[0];
  // At epsilon .1, of the document's table 1 (golden.json).
  EXPECT_EQ(printed.x, .1);
  EXPECT_NEAR(printed.y, 857.518165, 1e-5 * 857.5);
  EXPECT_LT(exact.y, printed.y);
  EXPECT_NEAR(SeriesNamed(panel, "generalised Gaussian, as published").points[0].y, 1320, 1e-9);
  EXPECT_THAT(figures[0].words[0], HasSubstr(Short(exact.y)));
  EXPECT_THAT(figures[0].words[0], Not(HasSubstr("not proven")));
  EXPECT_THAT(figures[0].words[1], HasSubstr("not proven from epsilon 1 on"));
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

// Figures agree about equal conditions.
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
              ElementsAre("recall", "cells", "ablation", "convergence", "settings", "alignment",
                          "inference-privacy", "bounded-gaussian"));
  EXPECT_EQ(absl::StrJoin(names("", true), ", "), ExperimentNames());
  EXPECT_THAT(MakeExperiments(SmallStage(), "recal", false, {}),
              FailsWith(absl::StatusCode::kInvalidArgument, "but has \"recal\""));
}

}  // namespace
}  // namespace privatemail::client
