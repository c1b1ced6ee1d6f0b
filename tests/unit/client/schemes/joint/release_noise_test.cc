// Sensitivity and noise stddev of a release against independent formulas: the bounds of
// one_column_bounds.h, values of make_golden.py's functions, and closed forms written here.

#include "client/schemes/joint/release_noise.h"

#include "client/privacy/accounting/composition.h"
#include "client/schemes/joint/joint_scheme.h"
#include "tests/golden/one_column_bounds.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client::release_noise_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;
using namespace one_column;  // the oracle

constexpr double kChanged = 2;  // rows: neighbours may be of another class
constexpr double kEpsilon = .5;
constexpr double kDelta = 1e-5;
// The root s of Phi(1/2s - s/2) - e^(1/2) Phi(-1/2s - s/2) = 1e-5 (analytic_gaussian).
constexpr double kGaussianStddev = 7.031826675582491;

// A proven calibration of a box of equal sides: the s at which `loss` is epsilon, by bisection. The
// loss falls with s.
double SolveForStddev(double epsilon, const std::function<long double(long double s)>& loss) {
  long double low = 1e-9L, high = 1e9L;
  for (int i = 0; i < 200; ++i) {
    const long double middle = std::sqrt(low * high);
    (loss(middle) > epsilon ? low : high) = middle;
  }
  return static_cast<double>(high);
}

// ln of the mass of N(c, s^2) on [0, w].
long double LnMass(long double w, long double c, long double s) {
  const long double root = std::sqrt(2.L) * s;
  return std::log((std::erf((w - c) / root) + std::erf(c / root)) / 2);
}

// MakeIterationNoise on the oracle's public inputs: one column, four slots, twenty anchors in
// general position. feature_dim only scales the rounding allowance.
class ReleaseConstants : public ::testing::TestWithParam<MechanismTraits> {
 protected:
  ReleaseConstants() {
    parameters_.settings.embedding_dim = 1;
    parameters_.settings.kernel_bandwidth = kBandwidth;
    parameters_.settings.alpha = kAlpha;
    parameters_.settings.start_stddev = 1;
    parameters_.settings.label_graph = LabelGraphKind::kOneHotKernel;
    for (int i = 0; i < kSlots; ++i) parameters_.slot_labels.push_back(i);
    parameters_.anchor_count = kAnchors;
    std::mt19937 bits(3);
    std::normal_distribution<double> normal;
    anchors_ = Matrix::NullaryExpr(kAnchors, 5, [&] { return normal(bits); });
    anchors_.rowwise().normalize();
    for (int i = 0; i < kRows; ++i) start_(i, 0) = oracle_.q[static_cast<size_t>(i)];
  }

  absl::StatusOr<IterationNoise> Noise(int64_t iterations, int64_t feature_dim) {
    parameters_.feature_dim = feature_dim;
    return MakeIterationNoise(parameters_.settings, parameters_.feature_dim, anchors_, inputs_,
                              Cost(iterations));
  }

  PrivacyCost Cost(int64_t iterations) const {
    PrivacyCost cost{
        .epsilon = kEpsilon, .mechanism = GetParam().kind, .private_iterations = iterations};
    if (GetParam().TakesDelta()) cost.delta = kDelta;
    if (GetParam().protects != Protects::kValue) cost.radius = radius_;
    return cost;
  }

  // Largest |f| that the start allows: (rho + |q_i| + g_i / ((n-1) m)) / 2.
  double LargestValue() const {
    double largest = 0;
    for (size_t i = 0; i < kRows; ++i) {
      largest =
          std::max(largest, std::abs(oracle_.q[i]) + oracle_.g[i] / ((kRows - 1) * oracle_.m));
    }
    return (Rho() + largest) / 2;
  }

  double Rho() const {
    double rho = 0;
    for (const double q : oracle_.q) rho = std::max(rho, std::abs(q));
    return rho;
  }

  // The rounding error of both neighbours, which sensitivity.h proves: (t/(1-t) + 3u) times the
  // norm of rho + g_i / ((n-1) m), t = expm1((9 (d+6) / c + 8 + n) u). In L1 sqrt(number of values)
  // times as much.
  double RoundingOfBoth(int64_t feature_dim) const {
    constexpr double kRoundoff = 0x1p-53;
    std::vector<double> sizes;
    for (const double g : oracle_.g) sizes.push_back(Rho() + g / ((kRows - 1) * oracle_.m));
    const double t =
        std::expm1((9. * static_cast<double>(feature_dim + 6) / kC + 8 + kRows) * kRoundoff);
    return 2 * (t / (1 - t) + 3 * kRoundoff) * LengthOf(sizes) *
           (GetParam().law == Law::kLaplace ? std::sqrt(kRows) : 1);
  }

  double InItsNorm(const Norms& norms) const {
    return GetParam().law == Law::kLaplace ? norms.l1 : norms.l2;
  }

  double ExpectedSensitivity(int64_t feature_dim) const {
    switch (GetParam().kind) {
      case MechanismKind::kPublishedGaussian:  // published_gaussian_bound(24, .6, 1, 3)
        return 200.41598054859375 * LengthOf(oracle_.q);
      case MechanismKind::kPublishedLaplace:  // published_laplace_constants(24, .6, 1), k = 1
        return 860.6077959659536;
      default:
        break;
    }
    switch (GetParam().protects) {
      case Protects::kInput:
        return radius_;
      case Protects::kOutput:
        return radius_ * InItsNorm(Lipschitz(oracle_)) + RoundingOfBoth(feature_dim);
      case Protects::kValue:
        break;
    }
    return std::min(InItsNorm(ReplaceTarget(oracle_, kChanged)),
                    InItsNorm(KnownAnchors(oracle_, anchors_, kChanged))) +
           RoundingOfBoth(feature_dim);
  }

  // By PRIVACY.md section 6: Gaussian noise grows by the root of the number of iterations, pure
  // laws share epsilon.
  double ExpectedStddev(double sensitivity, int iterations) const {
    const double root = std::sqrt(iterations);
    const double share = kEpsilon / iterations;
    const bool published = GetParam().published;
    switch (GetParam().law) {
      case Law::kGaussian:
        return sensitivity * root *
               (published ? std::sqrt(2 * std::log(1.25 / kDelta)) / kEpsilon : kGaussianStddev);
      case Law::kLaplace:
        return sensitivity * M_SQRT2 / share;
      case Law::kBoundedGaussian: {
        // Equal sides split the sensitivity evenly.
        const long double w = 2 * LargestValue();
        const long double each = sensitivity / std::sqrt(static_cast<long double>(kRows));
        if (published) {  // theorem 13; the mass is largest around the middle of a side
          const long double c = std::min(each, w / 2);
          return SolveForStddev(share, [&](long double s) {
            return (std::sqrt(static_cast<long double>(kRows)) * w + sensitivity / 2) *
                       sensitivity / (s * s) +
                   kRows * (LnMass(w, c, s) - LnMass(w, 0, s));
          });
        }
        const long double c = std::min(each, w);
        return SolveForStddev(share, [&](long double s) {
          return kRows * (c * (2 * w - c) / (2 * s * s) - LnMass(w, c, s) + LnMass(w, 0, s));
        });
      }
    }
    return 0;
  }

  double radius_ = .3;
  const OneColumn oracle_;
  PublicParameters parameters_;
  Matrix anchors_;
  Matrix start_{kRows, 1};
  LabelGraph label_graph_ = [] {
    std::vector<int32_t> labels;
    for (int i = 0; i < kRows; ++i) labels.push_back(i % kSlots);
    return LabelGraph(labels, LabelGraphKind::kOneHotKernel, kC);
  }();
  const IterationInputs inputs_{.start = start_,
                                .label_graph = label_graph_,
                                .alpha = kAlpha,
                                .kernel_denominator = kC,
                                .slots = kSlots};
};

// 2^27 coordinates make the rounding allowance visible.
TEST_P(ReleaseConstants, SensitivityIsBoundPlusRounding) {
  for (const int64_t feature_dim : {int64_t{5}, int64_t{1} << 27}) {
    SCOPED_TRACE(feature_dim);
    ASSERT_OK_AND_ASSIGN(const IterationNoise noise, Noise(1, feature_dim));
    const double expected = ExpectedSensitivity(feature_dim);
    EXPECT_NEAR(noise.sensitivity / expected, 1, 1e-10);
    if (feature_dim > 5) {
      EXPECT_GT(RoundingOfBoth(feature_dim) / expected, 1e-9) << "the test has no power";
    }
  }
}

TEST_P(ReleaseConstants, StddevMatchesSensitivity) {
  for (const int iterations : {1, 4}) {
    if (iterations > 1 && GetParam().protects == Protects::kInput) continue;  // takes one only
    SCOPED_TRACE(iterations);
    ASSERT_OK_AND_ASSIGN(const IterationNoise noise, Noise(iterations, 5));
    const double sensitivity = ExpectedSensitivity(5);
    EXPECT_NEAR(noise.sensitivity / sensitivity, 1, 1e-10) << "must be that of the first iteration";
    const double wider = noise.mechanism->noise_stddev() / ExpectedStddev(sensitivity, iterations);
    EXPECT_GE(wider, 1 - 1e-10);
    EXPECT_LE(wider, 1 + 1e-6);  // the grid's share, and that of the calibrations
  }
}

// The mu that has (epsilon, delta), for any number of iterations.
TEST_P(ReleaseConstants, ChargedMuCoversAllIterations) {
  if (GetParam().law != Law::kGaussian || GetParam().published) return;  // has none
  for (const int iterations : {1, 4}) {
    if (iterations > 1 && GetParam().protects == Protects::kInput) continue;  // takes one only
    SCOPED_TRACE(iterations);
    ASSERT_OK_AND_ASSIGN(const IterationNoise noise, Noise(iterations, 5));
    const double charged = ComposeGuarantee(Cost(iterations), noise).gaussian_mu.value();
    EXPECT_NEAR(charged * kGaussianStddev, 1, 1e-8);
    const double moved = noise.sensitivity / noise.mechanism->noise_stddev();
    EXPECT_GE(charged, std::sqrt(iterations) * moved * (1 - 1e-14));
  }
}

// Scaling a row to length 1 rounds it by up to d/2 + 4 units (sensitivity.h), of each
// neighbour: here an eighth of the radius and more than it. The code allows d + 4.
TEST_P(ReleaseConstants, InputNoiseCoversRoundingOfUnitRows) {
  if (GetParam().protects != Protects::kInput || GetParam().published) return;
  for (const auto& [dim, radius] : {std::pair(1 << 20, 1e-9), {2, 1e-15}}) {
    radius_ = radius;
    ASSERT_OK_AND_ASSIGN(const IterationNoise noise, Noise(1, dim));
    const double hidden = noise.mechanism->noise_stddev() / kGaussianStddev;
    EXPECT_GE(hidden, radius + 2 * (.5 * dim + 4) * 0x1p-53);
    EXPECT_LE(hidden, (radius + 2. * (dim + 4) * 0x1p-53) * (1 + 1e-3));  // the grid's share
    EXPECT_EQ(ComposeGuarantee(Cost(1), noise).radius, radius) << "what is promised";
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ReleaseConstants, ::testing::ValuesIn(AllMechanisms()),
                         [](const auto& param_info) {
                           std::string name = param_info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

constexpr int kFeatures = 6;

// Releases of one target over 24 random anchors of four classes, each with a ledger of its own.
class ReleaseNoise : public ::testing::Test {
 protected:
  ReleaseNoise() {
    anchors_.features = NormalRows(24, kFeatures, 1);
    for (int i = 0; i < 24; ++i) anchors_.labels.push_back(10 * (i % 4));
  }

  absl::StatusOr<JointRelease> Release(const PrivacyCost& cost) const {
    const FundedLedger funded;
    SeededBits bits(4);
    auto release =
        JointScheme::Create(*MakePublicParameters(kUuid, EmbeddingSettings{}, anchors_, {}, "v"),
                            anchors_)
            ->Release({Eigen::RowVectorXf::LinSpaced(kFeatures, 1, 2), 10}, cost,
                      ChargeTo(*funded.ledger, kUuid), bits);
    const auto charged = funded.ledger->Show(kUuid);
    EXPECT_EQ(charged->releases, release.ok() ? 1 : 0);
    // All iterations together cost this.
    EXPECT_EQ(charged->spent().epsilon, release.ok() ? cost.epsilon : 0);
    return release;
  }

  // A valid cost of one iteration.
  static PrivacyCost CostOf(const MechanismTraits& traits) {
    PrivacyCost cost{.epsilon = .1, .mechanism = traits.kind};
    if (traits.TakesDelta()) cost.delta = 1e-5;
    if (traits.protects != Protects::kValue) cost.radius = .5;
    return cost;
  }

  Anchors anchors_;
};

TEST_F(ReleaseNoise, SourceNamesCompositionTheorem) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    PrivacyCost cost = CostOf(traits);
    ASSERT_OK_AND_ASSIGN(const JointRelease one, Release(cost));
    EXPECT_THAT(one.guarantee.source, Not(HasSubstr("composition")));
    if (traits.protects == Protects::kInput) continue;  // takes one iteration only
    cost.private_iterations = 8;
    ASSERT_OK_AND_ASSIGN(const JointRelease eight, Release(cost));
    const absl::string_view theorem =
        traits.law == Law::kGaussian ? kGaussianComposition : kBasicComposition;
    EXPECT_EQ(eight.guarantee.source,
              absl::StrCat(theorem, " over 8 iterations of: ", one.guarantee.source));
    if (traits.law == Law::kGaussian) continue;
    cost.delta = .09;  // sqrt(2 * 8 ln(1/.09)) = 6.2: less than 8
    ASSERT_OK_AND_ASSIGN(const JointRelease strong, Release(cost));
    EXPECT_EQ(strong.guarantee.source,
              absl::StrCat(kStrongComposition, " over 8 iterations of: ", one.guarantee.source));
    EXPECT_EQ(strong.guarantee.delta, .09);
    if (traits.law == Law::kLaplace) {
      EXPECT_LT(strong.noise_stddev, .8 * eight.noise_stddev);
    }
    cost.delta = 1e-5;  // sqrt(2 * 8 ln(1e5)) = 13.6: more than 8, so the plain sum wins
    ASSERT_OK_AND_ASSIGN(const JointRelease plain, Release(cost));
    EXPECT_EQ(plain.guarantee, eight.guarantee);
    EXPECT_EQ(plain.guarantee.delta, 0) << "delta is charged without use";
  }
}

TEST_F(ReleaseNoise, SourceNamesProofOfSensitivity) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    ASSERT_OK_AND_ASSIGN(const JointRelease release, Release(CostOf(traits)));
    const std::string& source = release.guarantee.source;
    const bool printed_sensitivity = traits.kind == MechanismKind::kPublishedGaussian ||
                                     traits.kind == MechanismKind::kPublishedLaplace;
    EXPECT_EQ(source.find("known_anchors_sensitivity.h") != std::string::npos,
              traits.protects == Protects::kValue && !printed_sensitivity)
        << source;
    EXPECT_EQ(source.find("lipschitz.h") != std::string::npos, traits.protects == Protects::kOutput)
        << source;
    EXPECT_EQ(source.find("as published, not a proven guarantee") != std::string::npos,
              traits.published)
        << source;
    EXPECT_EQ(release.guarantee.neighbours == "as published: a row added", printed_sensitivity);
    EXPECT_EQ(release.guarantee.proven, !traits.published);
    EXPECT_EQ(release.guarantee.epsilon, .1);
    EXPECT_EQ(release.guarantee.delta, traits.TakesDelta() ? 1e-5 : 0);
    EXPECT_EQ(release.guarantee.radius.has_value(), traits.protects != Protects::kValue);
    EXPECT_TRUE(release.rows.allFinite());
  }
}

TEST_F(ReleaseNoise, RadiusAboveSphereDiameterReturnsInvalidArgument) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    if (traits.protects == Protects::kValue) continue;
    SCOPED_TRACE(traits.name);
    PrivacyCost cost = CostOf(traits);
    cost.radius = 2;
    ASSERT_OK_AND_ASSIGN(const JointRelease release, Release(cost));
    EXPECT_EQ(release.guarantee.radius, 2);
    cost.radius = 2.5;
    EXPECT_THAT(Release(cost), FailsWith(kInvalid, "radius must be at most 2"));
    cost.radius = std::nextafter(2., 3.);
    EXPECT_THAT(Release(cost), FailsWith(kInvalid, "radius"));
    cost.radius = INFINITY;
    EXPECT_THAT(Release(cost), FailsWith(kInvalid, "radius"));
  }
}

}  // namespace
}  // namespace privatemail::client::release_noise_test
