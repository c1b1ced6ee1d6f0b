// The random draws of a joint release and the starts of its iterations.
#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>

#include "client/privacy/sampling/exact_sampling.h"
#include "client/schemes/joint/joint_scheme.h"
#include "client/schemes/joint/joint_steps.h"
#include "common/base/validate.h"
#include "tests/testing/plain_iteration.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client::joint_draws_test {
namespace {

constexpr int kClasses = 4;
constexpr int kOfClass = 6;
constexpr int kDim = 6;

// Labels 0, 10, 20, 30 in turn.
Anchors MakeAnchors() {
  Anchors anchors{NormalRows(kClasses * kOfClass, kDim, 1), {}};
  for (int i = 0; i < kClasses * kOfClass; ++i) anchors.labels.push_back(10 * (i % kClasses));
  return anchors;
}

PublicParameters Parameters() {
  return *MakePublicParameters(kUuid, EmbeddingSettings{}, MakeAnchors(), {}, "vectors");
}

// Labels of the slots, then of the anchors.
const std::vector<int32_t> kLabels = [] {
  std::vector<int32_t> labels = {0, 10, 20, 30};
  for (const int32_t label : MakeAnchors().labels) labels.push_back(label);
  return labels;
}();

// Rows of the slots, of which slot 1 has the target and the others their dummies, then anchors.
Matrix UnitRowsOf(const TargetIndependentPart& part, const RowVector& target) {
  Matrix anchors = MakeAnchors().features.cast<double>();
  anchors.rowwise().normalize();
  Matrix rows(kClasses + anchors.rows(), kDim);
  for (int slot = 0; slot < kClasses; ++slot) {
    rows.row(slot) = anchors.row(part.dummies[static_cast<size_t>(slot)]);
  }
  rows.row(1) = target;
  rows.bottomRows(anchors.rows()) = anchors;
  return rows;
}

JointSetting MakeSetting() { return *MakeJointSetting(Parameters(), MakeAnchors()); }

// Noise on the grid, as integers.
struct Noise {
  std::vector<int64_t> draws;
  int exponent = 0;  // a step is 2^exponent

  FloatMatrix AddedTo(const Matrix& values) const {
    FloatMatrix sums(values.rows(), values.cols());
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      const int64_t rounded = std::llrint(std::ldexp(values.data()[i], -exponent));
      sums.data()[i] = std::ldexp(static_cast<float>(draws[i] + rounded), exponent);
    }
    return sums;
  }
};

// The draws that the mechanism will make from a copy of these bits. The grid has 2^30 steps per
// stddev.
Noise ReplayGaussian(const Mechanism& mechanism, int64_t count, SeededBits bits) {
  const double stddev = mechanism.noise_stddev();
  Noise noise;
  noise.exponent = std::ilogb(stddev) - 30;
  const double steps = std::ldexp(stddev, -noise.exponent);
  EXPECT_EQ(steps, std::floor(steps));
  noise.draws = *SampleDiscreteGaussian(count, static_cast<uint64_t>(steps), bits);
  return noise;
}

uint8_t NextByte(BitSource& bits) {
  uint8_t byte = 0;
  EXPECT_THAT(bits.Fill(absl::MakeSpan(&byte, 1)), IsOk());
  return byte;
}

// The row of a slot.
RowVector RowOf(const Border& slots, size_t slot, const JointSetting& setting) {
  const Eigen::Index original = slots.copy_of[slot];
  if (original != Border::kOwn) return setting.anchors->points().row(original);
  return slots.own.row(std::count(
      slots.copy_of.begin(), slots.copy_of.begin() + static_cast<int64_t>(slot), Border::kOwn));
}

TEST(JointDraws, StartDummiesAndNoiseDoNotDependOnTarget) {
  const JointSetting setting = MakeSetting();
  const PrivacyCost cost{.epsilon = 1, .delta = 1e-5};

  // Two runs under the same bits, with targets of the classes in slots 0 and 2.
  SeededBits one_bits(9);
  SeededBits two_bits(9);
  ASSERT_OK_AND_ASSIGN(const TargetIndependentPart one,
                       DrawTargetIndependentPart(setting, cost, one_bits));
  ASSERT_OK_AND_ASSIGN(const TargetIndependentPart two,
                       DrawTargetIndependentPart(setting, cost, two_bits));
  EXPECT_EQ(one.start, two.start);
  EXPECT_EQ(one.dummies, two.dummies);
  EXPECT_EQ(one.noise.sensitivity, two.noise.sensitivity);
  EXPECT_EQ(one.noise.mechanism->noise_stddev(), two.noise.mechanism->noise_stddev());

  const Matrix target = *UnitRows("target", NormalRows(2, kDim, 77));
  const Border one_rows = SlotRows(setting, one, 0, target.row(0));
  const Border two_rows = SlotRows(setting, two, 2, target.row(1));
  for (size_t slot = 0; slot < setting.parameters.slot_labels.size(); ++slot) {
    EXPECT_EQ(RowOf(one_rows, slot, setting) == RowOf(two_rows, slot, setting),
              slot != 0 && slot != 2)
        << "slot " << slot;
  }
  EXPECT_EQ(RowOf(one_rows, 0, setting), target.row(0));
  EXPECT_EQ(RowOf(two_rows, 2, setting), target.row(1));
  EXPECT_EQ(RowOf(two_rows, 0, setting), setting.anchors->points().row(one.dummies[0]));
  EXPECT_EQ(RowOf(one_rows, 2, setting), setting.anchors->points().row(one.dummies[2]));

  // The iterates differ, the noise does not: both are the value on the grid plus the replayed
  // draws.
  const Matrix one_iteration =
      PrivateIteration(setting, one.start, FeatureGraph(setting, one_rows));
  const Matrix two_iteration =
      PrivateIteration(setting, two.start, FeatureGraph(setting, two_rows));
  EXPECT_NE(one_iteration, two_iteration);
  EXPECT_LE((one_iteration - two_iteration).norm(), one.noise.sensitivity);
  const Noise noise = ReplayGaussian(*one.noise.mechanism, one_iteration.size(), one_bits);
  ASSERT_OK_AND_ASSIGN(const FloatMatrix one_released,
                       one.noise.mechanism->Release(one_iteration, one_bits));
  ASSERT_OK_AND_ASSIGN(const FloatMatrix two_released,
                       two.noise.mechanism->Release(two_iteration, two_bits));
  EXPECT_EQ(one_released, noise.AddedTo(one_iteration));
  EXPECT_EQ(two_released, noise.AddedTo(two_iteration));
  EXPECT_NE(one_released, two_released);
  EXPECT_EQ(NextByte(one_bits), NextByte(two_bits)) << "another number of bits was drawn";
}

// Each iteration starts from the release before it: at the least noise, the third release is within
// that noise of three plain iterations, and far from two and from four.
TEST(JointDraws, IterationStartsFromPreviousRelease) {
  const FloatMatrix target = NormalRows(1, kDim, 77);
  ASSERT_OK_AND_ASSIGN(const JointScheme scheme, JointScheme::Create(Parameters(), MakeAnchors()));
  for (const MechanismKind kind :
       {MechanismKind::kGaussian, MechanismKind::kLaplace, MechanismKind::kBoundedGaussian}) {
    SCOPED_TRACE(TraitsOf(kind).name);
    PrivacyCost cost{.epsilon = 1e6, .mechanism = kind, .private_iterations = 3};
    if (TraitsOf(kind).TakesDelta()) cost.delta = .5;
    SeededBits bits(9);
    ASSERT_OK_AND_ASSIGN(
        const JointRelease release,
        scheme.Release(
            {target, 10}, cost, [](const Guarantee&) { return absl::OkStatus(); }, bits));

    // Start and dummies are drawn first.
    SeededBits again(9);
    ASSERT_OK_AND_ASSIGN(const TargetIndependentPart part,
                         DrawStartAndDummies(MakeSetting(), again));
    const Matrix rows = UnitRowsOf(part, target.row(0).cast<double>().normalized());
    Matrix iterate = part.start;
    for (int i = 1; i <= 4; ++i) {
      iterate = PlainIteration(rows, kLabels, iterate, EmbeddingSettings{});
      const double away = (release.rows.cast<double>() - iterate).norm() / iterate.norm();
      if (i == 3) {
        EXPECT_LT(away, .02);
      } else {
        EXPECT_GT(away, .1) << i;
      }
    }
  }
}

// The noise of each iteration is made for its own start and drawn after the one before. With noise
// on the input the iteration sees the noisy row, scaled to length 1.
TEST(JointDraws, EachIterationHasItsOwnNoise) {
  const JointSetting setting = MakeSetting();
  const Matrix target = *UnitRows("target", NormalRows(1, kDim, 77));
  const PrivacyCost on_input{
      .epsilon = 1, .delta = 1e-5, .mechanism = MechanismKind::kGaussInput, .radius = 1};
  for (const PrivacyCost& cost :
       {PrivacyCost{.epsilon = 1, .delta = 1e-5, .private_iterations = 3}, on_input}) {
    SeededBits bits(9);
    ASSERT_OK_AND_ASSIGN(const TargetIndependentPart part,
                         DrawTargetIndependentPart(setting, cost, bits));
    SeededBits again = bits;
    ASSERT_OK_AND_ASSIGN(const std::vector<FloatMatrix> released,
                         ReleaseIterations(setting, part, cost, 1, target.row(0), bits));
    ASSERT_EQ(std::ssize(released), cost.private_iterations);
    RowVector row = target.row(0);
    if (cost.radius.has_value()) {
      row = part.noise.mechanism->Release(target, again)->row(0).cast<double>().normalized();
    }
    const Matrix unit_rows = UnitRowsOf(part, row);
    Matrix start = part.start;
    for (const FloatMatrix& rows : released) {
      Matrix expected = PlainIteration(unit_rows, kLabels, start, EmbeddingSettings{});
      ASSERT_OK_AND_ASSIGN(const IterationNoise noise, MakeIterationNoise(setting, start, cost));
      if (!cost.radius.has_value()) expected = *noise.mechanism->ReleaseInDouble(expected, again);
      start = rows.cast<double>();
      EXPECT_LT((start - expected).norm(), 1e-5 * expected.norm());
    }
    // The scheme draws in this order and releases the last.
    SeededBits same_bits(9);
    ASSERT_OK_AND_ASSIGN(const JointScheme scheme,
                         JointScheme::Create(Parameters(), MakeAnchors()));
    ASSERT_OK_AND_ASSIGN(const JointRelease release,
                         scheme.Release(
                             {NormalRows(1, kDim, 77), 10}, cost,
                             [](const Guarantee&) { return absl::OkStatus(); }, same_bits));
    EXPECT_EQ(release.rows, released.back());
  }
}

// Chi-square test against equal expectations. False-alarm probability: 1e-8.
void ExpectUniform(const std::vector<double>& counts) {
  double total = 0;
  for (const double count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  ASSERT_GE(expected, 100);
  double statistic = 0;
  for (const double count : counts) statistic += std::pow(count - expected, 2) / expected;
  const boost::math::chi_squared law(static_cast<double>(counts.size() - 1));
  EXPECT_LT(statistic, boost::math::quantile(boost::math::complement(law, 1e-8)));
}

// Over 7,200 fixed seeds. Under fresh bits the false-alarm probability would be below 1e-7 (10
// comparisons). Detects a candidate whose probability is off by a fifth.
TEST(JointDraws, DummiesAreUniformAndIndependent) {
  const JointSetting setting = MakeSetting();
  const PrivacyCost cost{.epsilon = 1, .delta = 1e-5};
  std::vector<std::vector<double>> of_slot(kClasses, std::vector<double>(kOfClass));
  std::vector<std::vector<double>> of_pair(kClasses * kClasses,
                                           std::vector<double>(kOfClass * kOfClass));
  for (uint64_t seed = 0; seed < 7'200; ++seed) {
    SeededBits bits(1'000'000 + seed);
    ASSERT_OK_AND_ASSIGN(const TargetIndependentPart part,
                         DrawTargetIndependentPart(setting, cost, bits));
    ASSERT_EQ(part.dummies.size(), kClasses);
    std::vector<size_t> candidate;
    for (int64_t slot = 0; slot < kClasses; ++slot) {
      // Row i of the pool is of slot i % kClasses.
      const int64_t row = part.dummies[static_cast<size_t>(slot)];
      ASSERT_EQ(row % kClasses, slot);
      candidate.push_back(static_cast<size_t>(row / kClasses));
      ++of_slot[static_cast<size_t>(slot)].at(candidate.back());
    }
    for (size_t a = 0; a < kClasses; ++a) {
      for (size_t b = 0; b < a; ++b) {
        ++of_pair[kClasses * a + b].at(kOfClass * candidate[a] + candidate[b]);
      }
    }
  }
  for (size_t a = 0; a < kClasses; ++a) {
    SCOPED_TRACE(a);
    ExpectUniform(of_slot[a]);
    for (size_t b = 0; b < a; ++b) ExpectUniform(of_pair[kClasses * a + b]);
  }
}

}  // namespace
}  // namespace privatemail::client::joint_draws_test
