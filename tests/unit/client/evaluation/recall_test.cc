#include <cmath>

#include "client/baselines/all_baselines.h"
#include "client/evaluation/data.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "client/seeded_bits/seeded_bits.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using testing::Contains;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

// A baseline that sees everything, and one that sees nothing.
std::vector<Baseline> Baselines() {
  const auto all = [](const DataSplit& split, double /*epsilon*/, double /*delta*/,
                      BitSource& /*bits*/) -> absl::StatusOr<BaselineRows> {
    return BaselineRows{split.gallery.features, split.targets.features};
  };
  const auto by_label = [](const DataSplit& split, double /*epsilon*/, double /*delta*/,
                           BitSource& /*bits*/) -> absl::StatusOr<BaselineRows> {
    BaselineRows rows{Matrix(split.gallery.labels.size(), 1),
                      Matrix(split.targets.labels.size(), 1)};
    for (size_t i = 0; i < split.gallery.labels.size(); ++i)
      rows.gallery(i, 0) = split.gallery.labels[i];
    for (size_t i = 0; i < split.targets.labels.size(); ++i)
      rows.targets(i, 0) = split.targets.labels[i];
    return rows;
  };
  return {{.name = "everything", .is_private = false, .protects = "nobody", .rows = all},
          {.name = "labels",
           .is_private = true,
           .protects = "the features",
           .gallery_share = .25,
           .remark = "It remarks.",
           .rows = by_label},
          {.name = "hidden", .protects = "each target", .hides_targets = true, .rows = all}};
}

// Panels.
constexpr size_t kProven = 0, kAsPublished = 1, kOthers = 2;

class Recall : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Study study = SmallStudy();
    figures_ = new std::vector<Figure>(
        FiguresOf(MakeRecallExperiment(std::make_shared<Stage>(study), Baselines()), study));
  }
  static void TearDownTestSuite() { delete figures_; }

  static std::vector<Figure>* figures_;
};
std::vector<Figure>* Recall::figures_ = nullptr;

TEST_F(Recall, HasEveryLineItPromises) {
  ASSERT_EQ(figures_->size(), 3u);
  for (const Figure& figure : *figures_) {
    ExpectSound(figure);
    ASSERT_EQ(figure.panels.size(), 3u);
    EXPECT_THAT(
        NamesOf(figure.panels[kProven]),
        IsSupersetOf({"PrivateMail, gaussian", "PrivateMail, laplace",
                      "PrivateMail, bounded-gaussian", "PrivateMail anchored, gaussian",
                      "PrivateMail anchored, laplace", "PrivateMail, laplace, 2 private iterations",
                      "PrivateMail without noise", "features, not private", "chance"}));
    EXPECT_THAT(NamesOf(figure.panels[kProven]), Each(Not(HasSubstr("published"))));
    EXPECT_THAT(NamesOf(figure.panels[kAsPublished]),
                IsSupersetOf({"PrivateMail, published-gaussian", "PrivateMail, published-laplace",
                              "PrivateMail, published-laplace, 2 private iterations",
                              "PrivateMail without noise", "features, not private", "chance"}));
    EXPECT_THAT(NamesOf(figure.panels[kAsPublished]), Not(Contains("PrivateMail, gaussian")));
    EXPECT_THAT(
        NamesOf(figure.panels[kOthers]),
        IsSupersetOf({"supervised embedding, not private, given the targets' labels", "everything",
                      "labels", "PrivateMail without noise", "features, not private", "chance"}));
    EXPECT_THAT(NamesOf(figure.panels[kOthers]), Not(Contains("PrivateMail, gaussian")));
  }
  const FigurePanel& recall = figures_->at(0).panels[kProven];
  EXPECT_EQ(SeriesNamed(recall, "PrivateMail, laplace").points.size(), 2u);
}

TEST_F(Recall, BaselinesAreScoredInTheirOwnSpace) {
  const FigurePanel& precision = figures_->at(1).panels[kOthers];
  EXPECT_EQ(SeriesNamed(precision, "labels").points[0].y, 1);
  const FigurePanel& fidelity = figures_->at(2).panels[kOthers];
  EXPECT_EQ(SeriesNamed(fidelity, "everything").points[0].y, 1);
  EXPECT_EQ(SeriesNamed(fidelity, "features, not private").points[0].y, 1);
  // 12 of the 240 gallery rows are of a target's class.
  EXPECT_NEAR(SeriesNamed(precision, "chance").points[0].y, .05, 1e-12);
}

// Of 20 classes 1 and 4, min(1, (k e^epsilon + (C - 1) delta) / (k e^epsilon + C - k)).
TEST_F(Recall, CeilingsAreThoseOfTheClosedForm) {
  const double delta = SmallStudy().delta;
  for (const auto& [figure, k] : {std::pair{0, 4.}, {1, 1.}}) {
    const std::vector<FigurePoint>& ceiling =
        SeriesNamed(figures_->at(figure).panels[0], "ceiling of answers from one private release")
            .points;
    ASSERT_EQ(ceiling.size(), 2u);
    for (const FigurePoint& point : ceiling) {
      const double e = std::exp(point.x);
      EXPECT_NEAR(point.y, (k * e + 19 * delta) / (k * e + 20 - k), 1e-12);
    }
    // Drawn as the curve that it is.
    const FigureSeries& drawn = SeriesNamed(figures_->at(figure).panels[kProven],
                                            "ceiling of answers from one private release");
    EXPECT_EQ(drawn.curve.front().x, .1);
    EXPECT_EQ(drawn.curve.back().x, 10);
    EXPECT_GT(drawn.curve.size(), 50u);
    for (const FigurePoint& point : drawn.curve) {
      const double e = std::exp(point.x);
      EXPECT_NEAR(point.y, (k * e + 19 * delta) / (k * e + 20 - k), 1e-12);
    }
    EXPECT_THAT(figures_->at(figure).words[1],
                HasSubstr(Short(ceiling[0].y) + " at epsilon 0.1 and " + Short(ceiling[1].y) +
                          " at epsilon 10"));
  }
  EXPECT_THAT(Joined(figures_->at(2).words), Not(HasSubstr("ceiling")));
}

TEST_F(Recall, NamesWhatTheCeilingDoesNotBind) {
  EXPECT_THAT(figures_->at(0).words[2], HasSubstr("It binds \"hidden\", \"chance\". "));
  for (const char* free : {"PrivateMail, gaussian", "PrivateMail, published-laplace", "everything",
                           "labels", "features, not private", "PrivateMail without noise"}) {
    EXPECT_THAT(figures_->at(0).words[2],
                ContainsRegex("not known to, .*\"" + std::string(free) + "\""));
  }
}

TEST_F(Recall, WordsHaveTheNumbersOfThePlots) {
  for (const Figure& figure : *figures_) {
    const FigurePoint& point = SeriesNamed(figure.panels[0], "PrivateMail, gaussian").points[0];
    EXPECT_THAT(figure.words[0], HasSubstr("at epsilon 0.1"));
    EXPECT_THAT(figure.words[0], HasSubstr(Short(point.y) + " (" + Short(point.low) + " to " +
                                           Short(point.high) + ")"));
  }
  const std::string words = Joined(figures_->at(0).words);
  EXPECT_THAT(words, HasSubstr("What \"labels\" protects: the features. It remarks."));
  EXPECT_THAT(Joined(figures_->at(2).words),
              HasSubstr("\"labels\" embeds 0.25 of the gallery: the rest never comes back"));
  EXPECT_THAT(Joined(figures_->at(2).words), Not(HasSubstr("\"everything\" embeds")));
  EXPECT_THAT(words, Not(HasSubstr("What \"everything\" protects")));
}

// The papers print their bounds for one kernel alone: with another, lines that follow them have no
// points, a sentence says why, and the rest is as ever.
TEST(RecallWithAnotherKernel, LeavesOutWhatThePapersDoNotPrint) {
  Study study = SmallStudy();
  study.settings.kernel = KernelConvention::kSigma;
  const std::vector<Figure> figures =
      FiguresOf(MakeRecallExperiment(std::make_shared<Stage>(study), {}), study);
  ASSERT_EQ(figures.size(), 3u);
  for (const Figure& figure : figures) {
    for (const char* refused : {"published-gaussian", "published-laplace"}) {
      const auto name = std::string("PrivateMail, ") + refused;
      for (const FigurePoint& point : SeriesNamed(figure.panels[kAsPublished], name).points) {
        EXPECT_TRUE(std::isnan(point.y)) << name;
      }
    }
    const FigureSeries& proven = SeriesNamed(figure.panels[0], "PrivateMail, gaussian");
    for (const FigurePoint& point : proven.points) EXPECT_TRUE(std::isfinite(point.y));
  }
  EXPECT_THAT(Joined(figures[0].words),
              HasSubstr("Not measured: \"PrivateMail, published-gaussian\", \"PrivateMail, "
                        "published-laplace\", \"PrivateMail, published-laplace, 2 private "
                        "iterations\" (the papers print their bounds"));
}

using testing::EndsWith;

DataSplit SmallSplit() {
  return *MakeSplit(Clouds(4, 30, 8, 1),
                    {.anchors_per_class = 10, .targets = 8, .gallery_per_class = 15}, 1);
}

std::vector<std::string> NamesOf(const std::vector<Baseline>& baselines) {
  std::vector<std::string> names;
  for (const Baseline& baseline : baselines) names.push_back(baseline.name);
  return names;
}

TEST(LibraryBaselines, AreAllBaselinesAndTheQuickOnesWiderToo) {
  EXPECT_THAT(NamesOf(LibraryBaselines(SmallSplit(), 2)),
              testing::ElementsAre(
                  "PCA, not private (2 columns)", "PCA, not private (8 columns)",
                  "t-SNE, not private (2 columns)", "private PCA, analyse-Gauss (2 columns)",
                  "private PCA, analyse-Gauss (8 columns)",
                  "private PCA, exponential mechanism, as published (2 columns)",
                  "private PCA, exponential mechanism over public candidates (2 columns)",
                  "private PCA, exponential mechanism over public candidates (8 columns)",
                  "private random projections (2 columns)",
                  "private random projections (8 columns)", "DP-dSNE (2 columns)"));
  EXPECT_EQ(LibraryBaselines(SmallSplit(), 8).size(), baselines::AllBaselines().size());
}

// A line's name and words agree with the baseline's own result.
TEST(LibraryBaselines, SayWhatTheirResultsSay) {
  const DataSplit split = SmallSplit();
  auto settings = baselines::Settings::OfDimension(2);
  settings.tsne.perplexity = settings.dp_dsne.tsne.perplexity = 5;
  const std::vector<Baseline> lines = LibraryBaselines(split, 8);
  size_t line = 0;
  int unproven = 0;
  for (const baselines::Baseline& baseline : baselines::AllBaselines()) {
    const std::string id = baseline.name;
    SeededBits bits(3);
    ASSERT_OK_AND_ASSIGN(const auto result, baseline.run(split, settings, {1, 1e-5}, bits));
    ASSERT_LT(line, lines.size());
    EXPECT_EQ(lines[line].protects, baseline.protects) << lines[line].name;
    EXPECT_EQ(lines[line].name.find("published") == std::string::npos, result.guarantee.proven)
        << lines[line].name;
    EXPECT_EQ(lines[line].hides_targets, id == "random-projection" || id == "dp-dsne") << id;
    unproven += result.guarantee.proven ? 0 : 1;
    ++line;
  }
  EXPECT_EQ(line, lines.size());
  EXPECT_EQ(unproven, 1);
}

// Fewer anchors than a candidate is usually fitted to, fewer rows than t-SNE's usual perplexity,
// and more columns asked for than there are.
TEST(LibraryBaselines, TakeWhatThereIsOfThreeClasses) {
  const DataSplit split = *MakeSplit(
      Clouds(3, 6, 5, 1), {.anchors_per_class = 2, .targets = 3, .gallery_per_class = 3}, 1);
  for (const int64_t dimension : {2, 4, 64}) {
    for (const Baseline& baseline : LibraryBaselines(split, dimension)) {
      SeededBits bits(3);
      ASSERT_OK_AND_ASSIGN(const BaselineRows rows, baseline.rows(split, 1, 1e-5, bits));
      EXPECT_TRUE(rows.gallery.allFinite()) << baseline.name;
      EXPECT_EQ(rows.gallery.rows(), 9) << baseline.name;
      EXPECT_TRUE(rows.gallery.cols() == std::min<int64_t>(dimension, 5) ||
                  rows.gallery.cols() == 5)
          << baseline.name;
    }
  }
}

// 60 rows, of which every second is embedded with the targets.
TEST(LibraryBaselines, SayWhatTheyLeaveOutAndNeverFindIt) {
  const DataSplit split = SmallSplit();
  int leave_out = 0;
  for (const Baseline& baseline : LibraryBaselines(split, 2, 30)) {
    SeededBits bits(3);
    ASSERT_OK_AND_ASSIGN(const BaselineRows rows, baseline.rows(split, 10, 1e-5, bits));
    ASSERT_EQ(rows.gallery.rows(), 60);
    const bool all = rows.gallery.cwiseAbs().maxCoeff() < 1e9;
    if (all) {
      EXPECT_THAT(baseline.name, testing::Not(EndsWith("gallery rows)")));
      continue;
    }
    ++leave_out;
    EXPECT_THAT(baseline.name, EndsWith(" (2 columns, 30 gallery rows)"));
    for (Eigen::Index row = 0; row < 60; ++row) {
      EXPECT_EQ(rows.gallery.row(row).cwiseAbs().maxCoeff() > 1e9, row % 2 == 1) << row;
    }
  }
  EXPECT_EQ(leave_out, 2);
}

}  // namespace
}  // namespace privatemail::client
