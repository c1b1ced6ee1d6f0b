#include "client/evaluation/attacks/attacks.h"

#include "client/evaluation/asking.h"
#include "client/evaluation/attacks/row_prediction.h"
#include "client/evaluation/figure_parts.h"
#include "client/evaluation/seeded_bits.h"
#include "tests/unit/evaluation/synthetic.h"

namespace privatemail {
namespace {

using testing::HasSubstr;

// With one candidate a class, the other slots' dummies are known and the prediction is exact.
TEST(RowPrediction, IsTheIterationWithoutNoise) {
  Study study = SmallStudy();
  study.sizes.anchors_per_class = 1;
  study.settings.kernel_bandwidth = 1;
  Stage stage(study);
  ASSERT_OK_AND_ASSIGN(const auto scene, stage.SceneOf(1));
  const JointSetting& joint = scene->joint;
  RowPrediction prediction(joint);
  for (const int64_t slot : {0, 7}) {
    SeededBits bits(1);
    const int64_t anchor = joint.of_slot[3][0];
    ASSERT_OK_AND_ASSIGN(
        const Released released,
        ReleaseOf(joint, std::nullopt, slot, joint.anchors->points().row(anchor), bits));
    prediction.Start(released.start);
    const RowVector expected = prediction.RowsOf(slot).row(anchor);
    const RowVector row = released.rows.row(slot).cast<double>();
    EXPECT_LT((expected - row).norm(), 1e-6 * row.norm()) << slot;
  }
}

LeakageAttack Fake(double right) {
  return {.id = "fake",
          .title = "fake",
          .given = "Everything.",
          .choices = 20,
          .bounded = true,
          .attack = [right](const Scene& scene, const std::optional<PrivacyCost>& /*cost*/,
                            const std::string& /*part*/) -> absl::StatusOr<std::vector<double>> {
            return std::vector<double>(scene.trial->split.targets.labels.size(), right);
          }};
}

TEST(Attacks, SayWhenAGuaranteeIsBroken) {
  const Study study = SmallStudy();
  const auto words_of = [&](double right) {
    const auto figures =
        FiguresOf(MakeAttacksExperiment(std::make_shared<Stage>(study), {Fake(right)}), study);
    ExpectSound(figures.at(0));
    return Joined(figures.at(0).words);
  };
  EXPECT_THAT(words_of(1), HasSubstr("the guarantee is broken"));
  EXPECT_THAT(words_of(1), HasSubstr("right in 1 of the cases"));
  EXPECT_THAT(words_of(0), HasSubstr("Nowhere does it certainly do better"));
}

// 2 seeds of 20 targets, all right: Clopper and Pearson's lower end is .025^(1/40).
TEST(Attacks, HaveClopperPearsonIntervals) {
  const Study study = SmallStudy();
  const auto figures =
      FiguresOf(MakeAttacksExperiment(std::make_shared<Stage>(study), {Fake(1)}), study);
  const FigurePoint& point = SeriesNamed(figures.at(0).panels[0], "right answers").points[0];
  EXPECT_NEAR(point.low, std::pow(.025, 1 / 40.), 1e-9);
  EXPECT_DOUBLE_EQ(point.high, 1);
}

TEST(Attacks, WorkWithoutNoiseAndKeepToTheGuaranteeWithIt) {
  Study study = SmallStudy();
  study.settings.kernel_bandwidth = 1;
  const auto stage = std::make_shared<Stage>(study);
  const auto figures = FiguresOf(MakeAttacksExperiment(stage), study);
  ASSERT_EQ(figures.size(), 4u);
  for (const Figure& figure : figures) ExpectSound(figure);
  // Certainly better than one in 20 slots, and than one of two items.
  EXPECT_THAT(Joined(figures[0].words), HasSubstr("the attack works"));
  EXPECT_THAT(Joined(figures[3].words), HasSubstr("the attack works"));
  EXPECT_GT(SeriesNamed(figures[2].panels[0], "right answers").points[0].y, .5);
  for (const size_t bounded : {0, 1, 3}) {
    EXPECT_THAT(Joined(figures[bounded].words), HasSubstr("Nowhere does it certainly do better"));
  }
  EXPECT_THAT(Joined(figures[2].words), HasSubstr("no guarantee bounds it"));
  EXPECT_THAT(Joined(figures[2].words), HasSubstr("works, with this noise and without"));
}

TEST(Attacks, AReleaseThatOverflowsNamesNoSlot) {
  const auto stage = std::make_shared<Stage>(SmallStudy());
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const Scene> sound, stage->SceneOf(1));
  const LeakageAttack attack = LabelAttack(20, /*slots=*/true);
  ASSERT_OK_AND_ASSIGN(const std::vector<double> right,
                       attack.attack(*sound, std::nullopt, "overflow"));
  EXPECT_THAT(right, testing::Contains(1));
  Scene scene = *sound;
  scene.joint.parameters.settings.alpha = 1e300;
  ASSERT_OK_AND_ASSIGN(const std::vector<double> none,
                       attack.attack(scene, std::nullopt, "overflow"));
  EXPECT_THAT(none, testing::Each(0));
}

TEST(Attacks, SayWhyTheyCouldNotBeMade) {
  Study study = SmallStudy();
  study.settings.kernel_bandwidth = .15;
  const auto stage = std::make_shared<Stage>(study);
  const std::vector<Figure> figures =
      FiguresOf(MakeAttacksExperiment(stage, {LabelAttack(20, /*slots=*/true)}), study);
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_TRUE(figures[0].panels[0].series.empty());
  EXPECT_THAT(figures[0].words.back(),
              testing::StartsWith("Not measured: values of up to"));
}

}  // namespace
}  // namespace privatemail
