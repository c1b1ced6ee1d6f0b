#include "client/evaluation/experiments/recall.h"

#include "client/evaluation/figure_parts.h"
#include "tests/unit/evaluation/synthetic.h"

namespace privatemail {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;

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
  return {{.name = "everything", .is_private = false, .protects = "nobody.", .rows = all},
          {.name = "labels", .is_private = true, .protects = "the features.", .rows = by_label}};
}

class Recall : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Study study = SmallStudy();
    figure_ = new Figure(
        FiguresOf(MakeRecallExperiment(std::make_shared<Stage>(study), Baselines()), study).at(0));
  }
  static void TearDownTestSuite() { delete figure_; }

  static Figure* figure_;
};
Figure* Recall::figure_ = nullptr;

TEST_F(Recall, HasEveryLineItPromises) {
  ExpectSound(*figure_);
  ASSERT_EQ(figure_->panels.size(), 3u);
  for (const FigurePanel& panel : figure_->panels) {
    EXPECT_THAT(NamesOf(panel),
                IsSupersetOf({"PrivateMail, gaussian", "PrivateMail, laplace",
                              "PrivateMail, bounded-gaussian", "PrivateMail, published-gaussian",
                              "PrivateMail, published-laplace", "PrivateMail without noise",
                              "features, not private", "supervised embedding, not private",
                              "everything", "labels", "chance"}));
  }
  EXPECT_THAT(NamesOf(figure_->panels[0]), testing::Contains("ceiling without slots"));
  EXPECT_EQ(SeriesNamed(figure_->panels[0], "PrivateMail, laplace").points.size(), 2u);
}

TEST_F(Recall, BaselinesAreScoredInTheirOwnSpace) {
  const FigurePanel& precision = figure_->panels[1];
  EXPECT_EQ(SeriesNamed(precision, "labels").points[0].y, 1);
  const FigurePanel& fidelity = figure_->panels[2];
  EXPECT_EQ(SeriesNamed(fidelity, "everything").points[0].y, 1);
  EXPECT_EQ(SeriesNamed(fidelity, "features, not private").points[0].y, 1);
  // 12 of the 240 gallery rows are of a target's class.
  EXPECT_NEAR(SeriesNamed(precision, "chance").points[0].y, .05, 1e-12);
}

TEST_F(Recall, WordsHaveTheNumbersOfThePlots) {
  const std::string words = Joined(figure_->words);
  for (const FigurePanel& panel : figure_->panels) {
    const FigurePoint& point = SeriesNamed(panel, "PrivateMail, gaussian").points[0];
    EXPECT_THAT(words, HasSubstr("at epsilon 0.1"));
    EXPECT_THAT(words, HasSubstr(Short(point.y) + " (" + Short(point.low) + " to " +
                                 Short(point.high) + ")"));
  }
  EXPECT_THAT(words, HasSubstr("labels: the features."));
  EXPECT_THAT(words, HasSubstr("everything: nobody."));
}

}  // namespace
}  // namespace privatemail
