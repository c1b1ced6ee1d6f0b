#include "client/evaluation/attacks/attacks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "client/evaluation/asking.h"
#include "client/evaluation/sweep.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/index/k_means.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using testing::HasSubstr;
using testing::Not;

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
    prediction.Start(released.known.start);
    const RowVector expected = prediction.RowsOf(slot).row(anchor);
    const RowVector row = released.rows.row(slot).cast<double>();
    EXPECT_LT((expected - row).norm(), 1e-6 * row.norm()) << slot;
  }
}

// The most that (epsilon, delta) allows in naming one of 20.
double AllowedOf20(double epsilon, double delta) {
  return (std::exp(epsilon) + 19 * delta) / (std::exp(epsilon) + 19);
}

// Right with the chance that `chance` says, at 100 where there is no noise.
LeakageAttack Fake(const std::function<double(double epsilon)>& chance) {
  return {.id = "fake",
          .title = "fake",
          .given = "Everything.",
          .choices = 20,
          .bound = LeakageAttack::Bound::kApproximate,
          .attack = [chance](const Scene& scene, const std::optional<PrivacyCost>& cost,
                             const std::string& part) -> absl::StatusOr<std::vector<double>> {
            std::mt19937_64 bits(SeedOf(part, scene.trial->seed));
            std::bernoulli_distribution is_right(chance(cost ? cost->epsilon : 100));
            std::vector<double> right;
            for (size_t i = 0; i < scene.trial->split.targets.labels.size(); ++i) {
              right.push_back(is_right(bits) ? 1 : 0);
            }
            return right;
          }};
}

LeakageAttack Fake(double chance) {
  return Fake([chance](double /*epsilon*/) { return chance; });
}

std::string WordsOf(const LeakageAttack& attack, const Study& study) {
  const auto figures =
      FiguresOf(MakeAttacksExperiment(std::make_shared<Stage>(study), {attack}), study);
  ExpectSound(figures.at(0));
  return Joined(figures.at(0).words);
}

TEST(Attacks, SayWhenAGuaranteeIsBroken) {
  const Study study = SmallStudy();
  EXPECT_THAT(WordsOf(Fake(1), study), HasSubstr("the guarantee is broken"));
  EXPECT_THAT(WordsOf(Fake(1), study), HasSubstr("right in 1 ("));
  EXPECT_THAT(WordsOf(Fake(0.), study), HasSubstr("Nowhere is it shown to do better"));
}

// Of 20 classes one has many rows, the others one more than anchors and gallery need: whoever
// always names that one is right more often than once in 20, and no guarantee is broken by it.
TEST(Attacks, WhoNamesALargeClassBreaksNoGuarantee) {
  Study study = SmallStudy();
  std::map<int32_t, int64_t> kept;
  std::vector<int64_t> rows;
  for (size_t row = 0; row < study.data.labels.size(); ++row) {
    const int32_t label = study.data.labels[row];
    const bool keep = label == 0 || kept[label] < study.sizes.anchors_per_class + 2;
    kept[label] += keep ? 1 : 0;
    if (keep) rows.push_back(static_cast<int64_t>(row));
  }
  study.data = RowsOf(study.data, rows);
  const auto large = kept[0] - study.sizes.anchors_per_class - 1;
  study.sizes.targets = 19 + large;
  LeakageAttack names_it = Fake(0.);
  names_it.names_class = true;
  names_it.attack = [](const Scene& scene, const std::optional<PrivacyCost>&,
                       const std::string&) -> absl::StatusOr<std::vector<double>> {
    std::vector<double> right;
    for (const int32_t label : scene.trial->split.targets.labels) right.push_back(label == 0);
    return right;
  };
  ASSERT_GT(large, 4);
  const std::string words = WordsOf(names_it, study);
  EXPECT_THAT(words, Not(HasSubstr("broken")));
  const double share = static_cast<double>(large) / static_cast<double>(19 + large);
  EXPECT_THAT(words, HasSubstr("A guess is right in " + Short(share)));
  EXPECT_THAT(words, HasSubstr("not shown to be better than a guess"));
}

// As good as the guarantee allows at 400 epsilons: each of the drawn bands is above that with a
// chance of 2.5 %, so that one of them is but for a chance of 4e-5.
TEST(Attacks, DoNotCallWhatIsAllowedABreach) {
  Study study = SmallStudy();
  study.epsilons.clear();
  for (int i = 1; i <= 400; ++i) study.epsilons.push_back(.01 * i);
  const auto allowed = [&](double epsilon) { return AllowedOf20(epsilon, study.delta); };
  const auto figures =
      FiguresOf(MakeAttacksExperiment(std::make_shared<Stage>(study), {Fake(allowed)}), study);
  int above = 0;
  for (const FigurePoint& point : SeriesNamed(figures.at(0).panels[0], "right answers").points) {
    above += point.low > allowed(point.x) ? 1 : 0;
  }
  EXPECT_GT(above, 0);
  EXPECT_THAT(Joined(figures.at(0).words), Not(HasSubstr("broken")));
  // At one of the epsilons it is right far more often than allowed, in .9 of 40 cases.
  const auto breach = [&](double epsilon) { return epsilon == .01 * 100 ? .9 : allowed(epsilon); };
  EXPECT_THAT(WordsOf(Fake(breach), study), HasSubstr("ALLOWS at epsilon 1, at a risk"));
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
  ASSERT_EQ(figures.size(), 8u);
  for (const Figure& figure : figures) ExpectSound(figure);
  // Certainly better than one in 20 slots, and than one of two items: of 40, 10 and 28 are.
  for (const auto& [attack, least] :
       {std::pair{0, .99}, {1, .99}, {2, .8}, {4, .25}, {5, .7}, {6, .5}, {7, .5}}) {
    EXPECT_GT(SeriesNamed(figures[attack].panels[0], "without noise").points[0].y, least);
    EXPECT_THAT(Joined(figures[attack].words), Not(HasSubstr("says little")));
  }
  EXPECT_GT(SeriesNamed(figures[4].panels[0], "right answers").points[0].y, .5);
  // Counts of 40 do not contradict the guarantee.
  for (const int attack : {0, 1, 2, 3, 5, 6, 7}) {
    const FigurePanel& panel = figures[attack].panels[0];
    const std::vector<FigurePoint>& allowed = SeriesNamed(panel, "the guarantee allows").points;
    const std::vector<FigurePoint>& found = SeriesNamed(panel, "right answers").points;
    ASSERT_EQ(allowed.size(), study.epsilons.size());
    for (size_t i = 0; i < allowed.size(); ++i) {
      const double most = allowed[i].y;
      EXPECT_LT(found[i].y, most + 5 * std::sqrt(most * (1 - most) / 40) + 1e-9) << attack;
    }
  }
  EXPECT_THAT(Joined(figures[4].words), HasSubstr("no guarantee bounds it"));
}

// Of two classes, too, where another law would allow something else.
TEST(Attacks, AreHeldToTheLawOfTheirGuarantee) {
  Study study = SmallStudy();
  study.epsilons = {1};
  study.delta = .01;
  const auto allowed = [&](LeakageAttack::Bound bound) {
    LeakageAttack attack = Fake(.5);
    attack.choices = 2;
    attack.bound = bound;
    const auto figures =
        FiguresOf(MakeAttacksExperiment(std::make_shared<Stage>(study), {attack}), study);
    return SeriesNamed(figures.at(0).panels[0], "the guarantee allows").points[0].y;
  };
  const double e = std::exp(1);
  EXPECT_NEAR(allowed(LeakageAttack::Bound::kPure), e / (e + 1), 1e-12);
  EXPECT_NEAR(allowed(LeakageAttack::Bound::kApproximate), (e + .01) / (e + 1), 1e-12);
  // By scipy: mu with norm.cdf(mu/2 - 1/mu) - e norm.cdf(-mu/2 - 1/mu) = .01, then norm.cdf(mu/2).
  EXPECT_NEAR(allowed(LeakageAttack::Bound::kGaussian), .6049798663433418, 1e-8);
}

int64_t CountRight(const LeakageAttack& attack, const Scene& scene, double epsilon, int runs) {
  int64_t right = 0;
  for (int run = 0; run < runs; ++run) {
    const auto found =
        attack.attack(scene, PrivacyCost{.epsilon = epsilon, .delta = 1e-5}, std::to_string(run));
    EXPECT_THAT(found, IsOk());
    right += found.ok() ? std::count(found->begin(), found->end(), 1) : 0;
  }
  return right;
}

// Written out as a posterior: of the cells that a class's anchors lie in, and of the one asked for
// given the own one.
class CellPosterior {
 public:
  CellPosterior(const Scene& scene, double epsilon)
      : scene_(scene),
        centroids_(KMeans(scene.trial->split.anchors.features.cast<float>(), 20, {})),
        of_anchors_(
            NearestCentroids(scene.trial->split.anchors.features.cast<float>(), centroids_)),
        of_targets_(
            NearestCentroids(scene.trial->split.targets.features.cast<float>(), centroids_)),
        own_(std::exp(epsilon) / (std::exp(epsilon) + 19)) {}

  // That this target is named right.
  double ChanceOf(size_t target) const {
    double chance = 0;
    for (int64_t asked = 0; asked < 20; ++asked) {
      if (Likeliest(asked) == scene_.trial->split.targets.labels[target]) {
        chance += Asks(asked, of_targets_[target]);
      }
    }
    return chance;
  }

 private:
  double Asks(int64_t asked, int64_t own) const { return asked == own ? own_ : (1 - own_) / 19; }

  // Labels are 0 to 19. Likelihoods of equal classes may differ by a rounding.
  int32_t Likeliest(int64_t asked) const {
    std::vector<double> likelihood(20);
    for (size_t i = 0; i < of_anchors_.size(); ++i) {
      const int32_t label = scene_.trial->split.anchors.labels[i];
      likelihood[static_cast<size_t>(label)] += Asks(asked, of_anchors_[i]) / 4;
    }
    int32_t likeliest = 0;
    for (int32_t label = 1; label < 20; ++label) {
      const auto at = [&](int32_t l) { return likelihood[static_cast<size_t>(l)]; };
      if (at(label) > at(likeliest) + 1e-12) likeliest = label;
    }
    return likeliest;
  }

  const Scene& scene_;
  const FloatMatrix centroids_;
  const std::vector<int64_t> of_anchors_;
  const std::vector<int64_t> of_targets_;
  const double own_;
};

// Clouds that overlap, so that cells are no classes.
TEST(Attacks, OnACellNameTheLikeliestClass) {
  Study study = SmallStudy();
  study.data = Clouds(20, 20, 2, 3);
  Stage stage(study);
  ASSERT_OK_AND_ASSIGN(const auto scene, stage.SceneOf(1));
  constexpr int kRuns = 500;
  for (const double epsilon : {.5, 3., 8.}) {
    const CellPosterior posterior(*scene, epsilon);
    double expected = 0, variance = 0;
    for (size_t target = 0; target < 20; ++target) {
      const double chance = posterior.ChanceOf(target);
      expected += kRuns * chance;
      variance += kRuns * chance * (1 - chance);
    }
    EXPECT_NEAR(CountRight(CellAttack(20), *scene, epsilon, kRuns), expected,
                5 * std::sqrt(variance) + 1e-9)
        << epsilon;
    EXPECT_LT(expected, kRuns * 20 * AllowedOf20(epsilon, 0));
  }
}

// How often the slot with the target is the farthest, by noise of the standard library's.
double ChanceToBeFarthest(const Matrix& moved, int64_t slot, double noise_stddev,
                          std::mt19937_64& bits) {
  constexpr int kDraws = 500;
  std::normal_distribution<double> noise(0, noise_stddev);
  int right = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Matrix away = moved.unaryExpr([&](double value) { return value + noise(bits); });
    Eigen::Index farthest = 0;
    away.rowwise().squaredNorm().maxCoeff(&farthest);
    right += farthest == slot ? 1 : 0;
  }
  return right / double{kDraws};
}

TEST(Attacks, OnAnchoredReleasesFindWhatTheNoiseLeaves) {
  Study study = SmallStudy();
  study.settings.kernel_bandwidth = 1;
  Stage stage(study);
  ASSERT_OK_AND_ASSIGN(const auto scene, stage.SceneOf(1));
  ASSERT_THAT(scene->anchored.status(), IsOk());
  const AnchoredSetting& setting = *scene->anchored;
  const LabelledRows& targets = scene->trial->split.targets;
  constexpr int kRuns = 40;
  std::mt19937_64 simulated(1);
  for (const double epsilon : {1., 10., 100.}) {
    const PrivacyCost cost{.epsilon = epsilon, .delta = 1e-5};
    ASSERT_OK_AND_ASSIGN(const AnchoredNoise noise, MakeAnchoredNoise(setting, cost));
    double expected = 0, variance = 0;
    for (int run = 0; run < kRuns; ++run) {
      for (size_t i = 0; i < targets.labels.size(); ++i) {
        SeededBits bits(SeedOf(std::to_string(run), 1, i));
        ASSERT_OK_AND_ASSIGN(const auto dummies, DrawDummies(setting.joint, bits));
        ASSERT_OK_AND_ASSIGN(const int64_t slot, scene->joint.parameters.SlotOf(targets.labels[i]));
        const RowVector dummy = scene->joint.anchors->points().row(dummies[slot]);
        const RowVector target = targets.features.row(static_cast<Eigen::Index>(i));
        const Matrix moved = ScaledSlotRows(setting, noise, dummies, {slot, target}) -
                             ScaledSlotRows(setting, noise, dummies, {slot, dummy});
        const double chance =
            ChanceToBeFarthest(moved, slot, noise.mechanism->noise_stddev(), simulated);
        expected += chance;
        variance += chance * (1 - chance) * (1 + 1. / 500);
      }
    }
    EXPECT_NEAR(CountRight(AnchoredDummiesAttack(20), *scene, epsilon, kRuns), expected,
                5 * std::sqrt(variance))
        << epsilon;
  }
}

// Noise of deviation s on rows that are D apart leaves Phi(D / 2s) to whoever compares likelihoods.
TEST(Attacks, LikelihoodsFindWhatTheNoiseLeaves) {
  Study study = SmallStudy();
  study.settings.kernel_bandwidth = 1;
  Stage stage(study);
  ASSERT_OK_AND_ASSIGN(const auto scene, stage.SceneOf(1));
  const DataSplit& split = scene->trial->split;
  for (const DecoyClass decoys : {DecoyClass::kOther, DecoyClass::kSame}) {
    for (const double epsilon : {.1, 10., 30.}) {
      const PrivacyCost cost{.epsilon = epsilon, .delta = study.delta};
      double expected = 0, variance = 0, right = 0;
      for (int run = 0; run < 10; ++run) {
        const std::string part = std::to_string(run);
        const auto found = LikelihoodAttack(decoys).attack(*scene, cost, part);
        ASSERT_THAT(found, IsOk());
        right += std::accumulate(found->begin(), found->end(), 0.);
        for (size_t i = 0; i < found->size(); ++i) {
          const auto slot_of = [&](int32_t label) {
            return *scene->joint.parameters.SlotOf(label);
          };
          const int32_t label = split.targets.labels[i];
          const int64_t other = DrawDecoy(split.gallery, label, decoys,
                                          SeedOf(part + "/other", scene->trial->seed, i));
          SeededBits bits(SeedOf(part, scene->trial->seed, i));
          const RowVector target = split.targets.features.row(static_cast<Eigen::Index>(i));
          const auto released = ReleaseOf(scene->joint, cost, slot_of(label), target, bits);
          ASSERT_THAT(released, IsOk());
          const auto exact = [&](int32_t of, const RowVector& row) {
            return ExactRows(scene->joint, released->known, slot_of(of), row);
          };
          const double apart =
              (exact(label, target) - exact(split.gallery.labels[static_cast<size_t>(other)],
                                            split.gallery.features.row(other)))
                  .norm();
          const double chance = .5 * std::erfc(-apart / 2 / released->noise_stddev / std::sqrt(2));
          expected += chance;
          variance += chance * (1 - chance);
        }
      }
      EXPECT_NEAR(right, expected, 5 * std::sqrt(variance)) << epsilon;
    }
  }
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
  EXPECT_THAT(figures[0].words.back(), testing::StartsWith("Not measured: values of up to"));
}

}  // namespace
}  // namespace privatemail::client
