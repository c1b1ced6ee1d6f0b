#include "client/simulation/attacks.h"

#include <cmath>
#include <numeric>

#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/seeded_bits/seeded_bits.h"
#include "client/simulation/queries.h"
#include "common/index/k_means.h"
#include "tests/testing/plain_iteration.h"
#include "tests/unit/client/simulation/clouds.h"

namespace privatemail::client::simulation {
namespace {

constexpr double kDelta = 1e-5;

PrivacyCost CostOf(double epsilon) { return {.epsilon = epsilon, .delta = kDelta}; }

int64_t CountRight(const char* name, const Scene& scene, double epsilon, int runs) {
  int64_t right = 0;
  for (int run = 0; run < runs; ++run) {
    const auto found = Attack(name, scene, {.cost = CostOf(epsilon), .part = std::to_string(run)});
    EXPECT_THAT(found, IsOk());
    right += found.ok() ? std::count(found->begin(), found->end(), 1) : 0;
  }
  return right;
}

// The rows before noise in plain loops, from the dummies and the start.
Matrix PlainRows(const Scene& scene, const std::vector<int64_t>& dummies, const Matrix& start,
                 int64_t slot, const RowVector& target) {
  const LabelledRows& anchors = scene.trial->split().anchors;
  Matrix rows(start.rows(), anchors.features.cols());
  std::vector<int32_t> labels;
  for (int32_t label = 0; label < 20; ++label) {
    labels.push_back(label);
    rows.row(label) = anchors.features.row(dummies[static_cast<size_t>(label)]);
  }
  rows.row(slot) = target;
  rows.bottomRows(anchors.features.rows()) = anchors.features;
  labels.insert(labels.end(), anchors.labels.begin(), anchors.labels.end());
  return PlainIteration(rows, labels, start, scene.settings());
}

TEST(Attack, UnknownNameReturnsInvalidArgument) {
  const auto trial = SmallTrial();
  ASSERT_OK_AND_ASSIGN(const auto scene, trial->SceneOf(SmallSettings()));
  EXPECT_THAT(Attack("none", *scene, {}), FailsWith(kInvalid, "likelihood, likelihood-of-class"));
}

TEST(Attack, WorksWithoutNoise) {
  const auto trial = *Trial::Create(SplitOf(Clouds(20, 20, 8, 1), 4, 5), 4, 1);  // 100 targets
  ASSERT_OK_AND_ASSIGN(const auto scene, trial->SceneOf(SmallSettings(3, 1)));
  // Better than one in 20 slots, and than one of two items (of 100, 66 by chance in one of 1,000).
  for (const auto& [name, least] : {std::pair{"likelihood", .99},
                                    {"likelihood-of-class", .99},
                                    {"dummies", .8},
                                    {"label-without-slots", .25},
                                    {"inversion", .65},
                                    {"cell", .4}}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<double> right,
                         Attack(name, *scene, {.cost = std::nullopt, .part = "clear"}));
    EXPECT_GT(std::accumulate(right.begin(), right.end(), 0.) / 100, least) << name;
  }
}

// A posterior written out: of the cells that a class's anchors lie in, and of the requested one
// given the own one.
class CellPosterior {
 public:
  CellPosterior(const Scene& scene, double epsilon)
      : scene_(scene),
        centroids_(KMeans(scene.trial->split().anchors.features.cast<float>(), 20, {})),
        of_anchors_(
            NearestCentroids(scene.trial->split().anchors.features.cast<float>(), centroids_)),
        of_targets_(
            NearestCentroids(scene.trial->split().targets.features.cast<float>(), centroids_)),
        own_(std::exp(epsilon) / (std::exp(epsilon) + 19)) {}

  // The probability that the attack names this target.
  double ChanceOf(size_t target) const {
    double chance = 0;
    for (int64_t requested = 0; requested < 20; ++requested) {
      if (Likeliest(requested) == scene_.trial->split().targets.labels[target]) {
        chance += Requests(requested, of_targets_[target]);
      }
    }
    return chance;
  }

 private:
  double Requests(int64_t requested, int64_t own) const {
    return requested == own ? own_ : (1 - own_) / 19;
  }

  // Labels are 0 to 19. Likelihoods of equal classes may differ by a rounding.
  int32_t Likeliest(int64_t requested) const {
    std::vector<double> likelihood(20);
    for (size_t i = 0; i < of_anchors_.size(); ++i) {
      const int32_t label = scene_.trial->split().anchors.labels[i];
      likelihood[static_cast<size_t>(label)] += Requests(requested, of_anchors_[i]) / 4;
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
TEST(Attack, OnACellNamesTheLikeliestClass) {
  const auto trial = SmallTrial(/*dim=*/2, /*seed=*/3);
  ASSERT_OK_AND_ASSIGN(const auto scene, trial->SceneOf(SmallSettings()));
  constexpr int kRuns = 500;
  for (const double epsilon : {.5, 3., 8.}) {
    const CellPosterior posterior(*scene, epsilon);
    double expected = 0, variance = 0;
    for (size_t target = 0; target < 20; ++target) {
      const double chance = posterior.ChanceOf(target);
      expected += kRuns * chance;
      variance += kRuns * chance * (1 - chance);
    }
    EXPECT_NEAR(static_cast<double>(CountRight("cell", *scene, epsilon, kRuns)), expected,
                5 * std::sqrt(variance) + 1e-9)
        << epsilon;
    EXPECT_LT(expected, kRuns * 20 * std::exp(epsilon) / (std::exp(epsilon) + 19));
  }
}

// Noise of deviation s on rows that are D apart leaves Phi(D / 2s) to an attack that compares
// likelihoods.
TEST(Attack, ByLikelihoodsFindsWhatTheNoiseLeaves) {
  const auto trial = SmallTrial();
  ASSERT_OK_AND_ASSIGN(const auto scene, trial->SceneOf(SmallSettings(3, 1)));
  const Split& split = trial->split();
  for (const DecoyClass decoys : {DecoyClass::kOther, DecoyClass::kSame}) {
    const char* name = decoys == DecoyClass::kSame ? "likelihood-of-class" : "likelihood";
    for (const double epsilon : {.1, 10., 30.}) {
      double expected = 0, variance = 0;
      for (int run = 0; run < 10; ++run) {
        const std::string part = std::to_string(run);
        for (size_t i = 0; i < split.targets.labels.size(); ++i) {
          const int32_t label = split.targets.labels[i];  // and its slot
          ASSERT_OK_AND_ASSIGN(const int64_t other, DrawDecoy(split.gallery, label, decoys,
                                                              SeedOf(part + "/other", 1, i)));
          SeededBits bits(SeedOf(part, 1, i));
          const RowVector target = split.targets.features.row(static_cast<Eigen::Index>(i));
          ASSERT_OK_AND_ASSIGN(const Released released,
                               Release(scene->joint, CostOf(epsilon), label, target, bits));
          const auto exact = [&](int32_t of, const RowVector& row) {
            return PlainRows(*scene, released.known.dummies, released.known.start, of, row);
          };
          const double apart =
              (exact(label, target) - exact(split.gallery.labels[static_cast<size_t>(other)],
                                            split.gallery.features.row(other)))
                  .norm();
          const double chance = .5 * std::erfc(-apart / 2 / released.noise_stddev / std::sqrt(2));
          expected += chance;
          variance += chance * (1 - chance);
        }
      }
      EXPECT_NEAR(static_cast<double>(CountRight(name, *scene, epsilon, 10)), expected,
                  5 * std::sqrt(variance))
          << name << " at " << epsilon;
    }
  }
}

TEST(Attack, OnAReleaseThatOverflowsNamesNoSlot) {
  const auto trial = SmallTrial();
  ASSERT_OK_AND_ASSIGN(const auto sound, trial->SceneOf(SmallSettings()));
  const AttackedReleases clear{.cost = std::nullopt, .part = "overflow"};
  ASSERT_OK_AND_ASSIGN(const std::vector<double> right, Attack("label", *sound, clear));
  EXPECT_THAT(right, ::testing::Contains(1));
  Scene scene = *sound;
  scene.joint.parameters.settings.alpha = 1e300;
  ASSERT_OK_AND_ASSIGN(const std::vector<double> none, Attack("label", scene, clear));
  EXPECT_THAT(none, ::testing::Each(0));
}

}  // namespace
}  // namespace privatemail::client::simulation
