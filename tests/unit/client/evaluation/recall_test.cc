#include <cmath>

#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
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

}  // namespace
}  // namespace privatemail::client
