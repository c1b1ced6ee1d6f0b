#include "client/schemes/anchored/anchored_steps.h"

#include <cmath>
#include <string>

#include "common/base/validate.h"
#include "common/embedding/affinity.h"
#include "common/embedding/smlq.h"
#include "tests/testing/release_inputs.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::anchored_steps_test {
namespace {

constexpr int kClasses = 5;
constexpr int kAnchors = 60;
constexpr int kDim = 6;
constexpr double kAlpha = 12;
constexpr MechanismKind kKinds[] = {MechanismKind::kGaussian, MechanismKind::kLaplace,
                                    MechanismKind::kBoundedGaussian, MechanismKind::kLapOutput,
                                    MechanismKind::kGaussOutput};

Anchors MakeAnchors() { return LeaningAnchors(kClasses, kAnchors, kDim); }

PublicParameters Parameters() {
  EmbeddingSettings settings;
  settings.alpha = kAlpha;
  return *MakePublicParameters(kUuid, settings, MakeAnchors(), {}, "vectors");
}

AnchoredSetting MakeSetting() {
  return *MakeAnchoredSetting(*MakeJointSetting(Parameters(), MakeAnchors(), std::nullopt));
}

PrivacyCost CostOf(MechanismKind kind, double radius = .4) {
  const MechanismTraits& traits = TraitsOf(kind);
  PrivacyCost cost{.epsilon = 1, .mechanism = kind};
  if (traits.TakesDelta()) cost.delta = 1e-5;
  if (traits.protects != MechanismTraits::Protects::kValue) cost.radius = radius;
  return cost;
}

Matrix UnitAnchors() { return *UnitRows("anchors", MakeAnchors().features); }

// L_Y of the distance graph, as PRIVACY.md section 1 writes it.
Matrix LabelLaplacian(const Vector& labels) {
  const Eigen::Index n = labels.size();
  const Matrix distance = Matrix::NullaryExpr(
      n, n, [&](Eigen::Index i, Eigen::Index j) { return std::abs(labels[i] - labels[j]); });
  const Matrix centring =
      Matrix::Identity(n, n) - Matrix::Constant(n, n, 1 / static_cast<double>(n));
  const Matrix affinity = -.5 * centring * distance * centring;
  return Matrix(affinity.rowwise().sum().asDiagonal()) - affinity;
}

Vector AnchorLabels() {
  return Vector::NullaryExpr(kAnchors, [](Eigen::Index i) { return 10. * (i % kClasses); });
}

// Oracle: dense matrices.
TEST(AnchoredSetting, CoordinatesAreIterationOverAnchors) {
  const Matrix w = GaussianAffinity(UnitAnchors(), 72);
  const Matrix l = LabelLaplacian(AnchorLabels());
  Matrix x = DeterministicStart(Fingerprint(Parameters()), kAnchors, 2, 1e-8);
  for (int step = 0; step < 5; ++step) {
    const Vector degrees = w.rowwise().sum();
    const Matrix feature_part = degrees.asDiagonal() * x - w * x;
    const Matrix updated =
        .5 * (degrees.cwiseInverse().asDiagonal() * (kAlpha * l * x - feature_part)) + x;
    x = updated * std::sqrt(kAnchors) / updated.norm();
  }
  EXPECT_LE((MakeSetting().coordinates - x).cwiseAbs().maxCoeff(), 1e-6);
}

// Section 5, z(x), with every sum over the anchors; the label graph over slots and anchors.
Matrix ExactRows(const AnchoredSetting& setting, const Matrix& inputs) {
  Vector labels(kClasses + kAnchors);
  labels << Vector::NullaryExpr(kClasses, [](Eigen::Index c) { return 10. * c; }), AnchorLabels();
  Matrix start = Matrix::Zero(kClasses + kAnchors, 2);
  start.bottomRows(kAnchors) = setting.coordinates;
  const Matrix pull = kAlpha * (LabelLaplacian(labels) * start).topRows(kClasses);
  Matrix rows(inputs.rows(), 2);
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) {
    RowVector sum = pull.row(i);
    double degree = 0;
    for (Eigen::Index j = 0; j < kAnchors; ++j) {
      const double w = std::exp(-(inputs.row(i) - UnitAnchors().row(j)).squaredNorm() / 72);
      sum += w * setting.coordinates.row(j);
      degree += w;
    }
    rows.row(i) = sum / (2 * degree);
  }
  return rows;
}

TEST(ScaledSlotRows, EqualProjectedExactRows) {
  const AnchoredSetting setting = MakeSetting();
  const AnchoredNoise noise = *MakeAnchoredNoise(setting, CostOf(MechanismKind::kGaussian));
  SeededBits bits(5);
  int beyond = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const std::vector<int64_t> dummies = *DrawDummies(setting.joint, bits);
    const PlacedTarget target{.slot = trial % kClasses,
                              .row = UnitRows("x", NormalRows(1, kDim, 50 + trial))->row(0)};
    Matrix inputs(kClasses, kDim);
    for (int c = 0; c < kClasses; ++c) inputs.row(c) = UnitAnchors().row(dummies[c]);
    inputs.row(target.slot) = target.row;
    const Matrix exact = ExactRows(setting, inputs);
    const Matrix scaled = ScaledSlotRows(setting, noise, dummies, target);
    for (int c = 0; c < kClasses; ++c) {
      EXPECT_EQ(dummies[c] % kClasses, c);
      RowVector from_centre = exact.row(c) - setting.centres.row(c);
      if (from_centre.norm() > setting.radii[c]) {
        from_centre *= setting.radii[c] / from_centre.norm();
        ++beyond;
      }
      EXPECT_LE((noise.scale[c] * scaled.row(c) - from_centre).norm(), 1e-12) << c;
    }
  }
  EXPECT_GT(beyond, 0);
  EXPECT_LT(beyond, 20 * kClasses);
}

TEST(AnchoredNoise, NeighboursMoveAtMostBySensitivity) {
  const AnchoredSetting setting = MakeSetting();
  SeededBits bits(6);
  for (const MechanismKind kind : kKinds) {
    SCOPED_TRACE(TraitsOf(kind).name);
    const bool hides_class = TraitsOf(kind).protects == MechanismTraits::Protects::kValue;
    const bool in_l1 = TraitsOf(kind).law == MechanismTraits::Law::kLaplace;
    for (const double radius : {.02, .4, 2.}) {
      const AnchoredNoise noise = *MakeAnchoredNoise(setting, CostOf(kind, radius));
      double farthest = 0;
      for (int trial = 0; trial < 300; ++trial) {
        const std::vector<int64_t> dummies = *DrawDummies(setting.joint, bits);
        const Matrix rows = NormalRows(2, kDim, 100 + trial).cast<double>();
        PlacedTarget one{.slot = trial % kClasses, .row = rows.row(0).normalized()};
        PlacedTarget other{.slot = (trial / kClasses) % kClasses, .row = rows.row(1).normalized()};
        if (!hides_class) {
          // Exactly `radius` apart on the sphere.
          const RowVector aside = (rows.row(1) - rows.row(1).dot(one.row) * one.row).normalized();
          const double angle = 2 * std::asin(radius / 2);
          other = {.slot = one.slot, .row = std::cos(angle) * one.row + std::sin(angle) * aside};
        }
        const Matrix move = ScaledSlotRows(setting, noise, dummies, one) -
                            ScaledSlotRows(setting, noise, dummies, other);
        farthest = std::max(farthest, in_l1 ? move.cwiseAbs().sum() : move.norm());
      }
      EXPECT_LE(farthest, noise.sensitivity) << radius;
      // The L1 sensitivity is sqrt(k) times a diameter, but rows vary along one direction only.
      EXPECT_GE(farthest, (radius == .02 && !hides_class ? .3
                           : in_l1                       ? .4
                                                         : .6) *
                              noise.sensitivity)
          << radius;
    }
  }
}

TEST(AnchoredNoise, ScaleFallsWithRadius) {
  const AnchoredSetting setting = MakeSetting();
  const Vector any = MakeAnchoredNoise(setting, CostOf(MechanismKind::kGaussian))->scale;
  const Vector wide = MakeAnchoredNoise(setting, CostOf(MechanismKind::kGaussOutput, 2))->scale;
  const Vector narrow = MakeAnchoredNoise(setting, CostOf(MechanismKind::kGaussOutput, .01))->scale;
  EXPECT_EQ(any, wide);
  EXPECT_TRUE((narrow.array() < .1 * any.array()).all()) << narrow << "\n\n" << any;
}

TEST(AnchoredNoise, GuaranteeStatesNeighboursAndProof) {
  const AnchoredSetting setting = MakeSetting();
  const Guarantee any = MakeAnchoredNoise(setting, CostOf(MechanismKind::kGaussian))->guarantee;
  EXPECT_EQ(any.neighbours, "the target, feature and class, replaced by any other usable target");
  EXPECT_THAT(any.source, ::testing::HasSubstr("anchored_bounds.h (sensitivity); Balle"));
  EXPECT_TRUE(any.proven);
  EXPECT_EQ(any.epsilon, 1);
  EXPECT_EQ(any.delta, 1e-5);
  const Guarantee near =
      MakeAnchoredNoise(setting, CostOf(MechanismKind::kLapOutput, .25))->guarantee;
  EXPECT_EQ(
      near.neighbours,
      "the target's features, scaled to length 1, replaced by any others at most 0.25 away "
      "(any others within 13 such steps: 13 times epsilon, more than 13 times any delta); the "
      "class is not hidden");
  EXPECT_EQ(near.radius, .25);
  EXPECT_EQ(near.delta, 0);
  EXPECT_THAT(near.source, ::testing::HasSubstr("anchored_bounds.h (Lipschitz constant)"));
}

// Unnormalised mass of a normal density around `mean` in [-box, box], by Simpson's rule.
double Within(double box, double mean, double stddev) {
  constexpr int kSteps = 2000;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double off = (-box + 2 * box * i / kSteps - mean) / stddev;
    sum += (i == 0 || i == kSteps ? 1 : i % 2 == 0 ? 2 : 4) * std::exp(-off * off / 2);
  }
  return sum * 2 * box / kSteps / 3;
}

// Oracle: the class's anchors weighted by the noise density of the released row.
TEST(PosteriorMeanCoordinates, EqualDensityWeightedMean) {
  const AnchoredSetting setting = MakeSetting();
  for (const MechanismKind kind :
       {MechanismKind::kGaussian, MechanismKind::kLaplace, MechanismKind::kBoundedGaussian}) {
    SCOPED_TRACE(TraitsOf(kind).name);
    const MechanismTraits::Law law = TraitsOf(kind).law;
    const AnchoredNoise noise = *MakeAnchoredNoise(setting, CostOf(kind));
    const double s = noise.mechanism->noise_stddev();
    const FloatMatrix noisy = NormalRows(kClasses, 2, 9);
    const FloatMatrix rows = PosteriorMeanCoordinates(setting, noise, law, noisy);
    EXPECT_EQ(rows.bottomRows(kAnchors).cast<double>(), setting.coordinates);
    for (int c = 0; c < kClasses; ++c) {
      RowVector sum = RowVector::Zero(2);
      double weights = 0;
      for (int j = c; j < kAnchors; j += kClasses) {
        const RowVector row =
            (setting.anchor_rows.row(j) - setting.centres.row(c)) / noise.scale[c];
        const RowVector off = noisy.row(c).cast<double>() - row;
        double weight = law == MechanismTraits::Law::kLaplace
                            ? std::exp(-std::sqrt(2) * off.cwiseAbs().sum() / s)
                            : std::exp(-off.squaredNorm() / (2 * s * s));
        if (law == MechanismTraits::Law::kBoundedGaussian) {
          for (const double value : row) weight /= Within(noise.largest, value, s);
        }
        sum += weight * setting.coordinates.row(j);
        weights += weight;
      }
      EXPECT_LE((rows.row(c).cast<double>() - sum / weights).norm(), 1e-6) << c;
    }
  }
}

TEST(PosteriorMeanCoordinates, PreciseRowGivesAnchorVagueRowGivesClassMean) {
  const AnchoredSetting setting = MakeSetting();
  PrivacyCost cost = CostOf(MechanismKind::kGaussian);
  cost.epsilon = 1e5;
  const AnchoredNoise precise = *MakeAnchoredNoise(setting, cost);
  cost.epsilon = 1e-6;
  const AnchoredNoise vague = *MakeAnchoredNoise(setting, cost);
  for (int j = 0; j < kClasses; ++j) {
    FloatMatrix noisy(kClasses, 2);
    for (int c = 0; c < kClasses; ++c) {
      noisy.row(c) =
          ((setting.anchor_rows.row(c + 5 * j) - setting.centres.row(c)) / precise.scale[c])
              .cast<float>();
    }
    const FloatMatrix found =
        PosteriorMeanCoordinates(setting, precise, MechanismTraits::Law::kGaussian, noisy);
    const FloatMatrix blind =
        PosteriorMeanCoordinates(setting, vague, MechanismTraits::Law::kGaussian, noisy);
    for (int c = 0; c < kClasses; ++c) {
      EXPECT_LE((found.row(c).cast<double>() - setting.coordinates.row(c + 5 * j)).norm(), 1e-3);
      RowVector mean = RowVector::Zero(2);
      for (int i = c; i < kAnchors; i += kClasses) {
        mean += setting.coordinates.row(i) / (kAnchors / kClasses);
      }
      EXPECT_LE((blind.row(c).cast<double>() - mean).norm(), 1e-4);
    }
  }
}

TEST(AnchoredSetting, CollinearAnchorsReturnFailedPrecondition) {
  PublicParameters parameters = Parameters();
  parameters.settings.steps = 200;
  ASSERT_OK_AND_ASSIGN(JointSetting joint,
                       MakeJointSetting(parameters, MakeAnchors(), std::nullopt));
  EXPECT_THAT(MakeAnchoredSetting(std::move(joint)),
              FailsWith(absl::StatusCode::kFailedPrecondition, "span"));
}

// An overflowing squared length would project a row to the centre of its ball.
TEST(AnchoredSetting, OverflowingRowsReturnFailedPrecondition) {
  Anchors anchors{FloatMatrix(40, 3), {}};
  for (int i = 0; i < 40; ++i) {
    const auto angle = static_cast<float>(i);
    anchors.features.row(i) << 1, 1e-3F * std::sin(1.7F * angle), 1e-3F * std::cos(2.3F * angle);
    anchors.labels.push_back(10 * (i % 2));
  }
  EmbeddingSettings settings;
  settings.embedding_dim = 1;
  settings.alpha = 1e9;
  settings.kernel_bandwidth = .0766;
  ASSERT_OK_AND_ASSIGN(const PublicParameters parameters,
                       MakePublicParameters(kUuid, settings, anchors, {}, "vectors"));
  ASSERT_OK_AND_ASSIGN(JointSetting joint, MakeJointSetting(parameters, anchors, std::nullopt));
  EXPECT_THAT(MakeAnchoredSetting(std::move(joint)),
              FailsWith(absl::StatusCode::kFailedPrecondition, "a slot's row may have the length"));
}

TEST(AnchoredSetting, ClassWithoutAnchorsReturnsInvalidArgument) {
  PublicParameters parameters = Parameters();
  parameters.slot_labels.push_back(1000);
  EXPECT_THAT(
      MakeJointSetting(parameters, MakeAnchors(), MakeAnchors()),
      FailsWith(absl::StatusCode::kInvalidArgument,
                "anchors must hold at least one vector of every class, but hold none of 1000"));
}

TEST(AnchoredSetting, KernelWithoutBoundReturnsFailedPrecondition) {
  PublicParameters parameters = Parameters();
  parameters.settings.kernel_bandwidth = .05;
  ASSERT_OK_AND_ASSIGN(JointSetting joint,
                       MakeJointSetting(parameters, MakeAnchors(), std::nullopt));
  EXPECT_THAT(MakeAnchoredSetting(std::move(joint)),
              FailsWith(absl::StatusCode::kFailedPrecondition, "kernel_bandwidth"));
}

}  // namespace
}  // namespace privatemail::client::anchored_steps_test
