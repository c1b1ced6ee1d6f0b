#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>

#include "client/privacy/mechanisms/bounded_gaussian_calibration.h"
#include "client/privacy/mechanisms/calibration.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/privacy/sensitivity/published_sensitivity.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "tests/golden/golden.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

using nlohmann::json;

TEST(PublishedGaussianGolden, MatchesPrintedFormulas) {
  ASSERT_EQ(Golden().at("published_gaussian_sensitivity").size(), 5u);
  for (const json& golden : Golden().at("published_gaussian_sensitivity")) {
    ASSERT_OK_AND_ASSIGN(
        const auto bound,
        PublishedGaussianSensitivity(golden.at("n"), golden.at("alpha"), golden.at("sigma"),
                                     golden.at("c"), golden.at("frobenius_norm_of_q")));
    ExpectSame(bound.m_ij, golden.at("M_ij"));
    ExpectSame(bound.m_ii, golden.at("M_ii"));
    ExpectSame(bound.m, golden.at("M"));
    ExpectSame(bound.sensitivity_as_printed, golden.at("delta_as_printed"));
    ExpectSame(bound.sensitivity_supported_by_proof, golden.at("delta_its_proof_supports"));
  }
}

TEST(CellsGolden, MatchesReference) {
  ASSERT_EQ(Golden().at("cells").size(), 5u);
  for (const json& golden : Golden().at("cells")) {
    ASSERT_OK_AND_ASSIGN(const auto mechanism,
                         CellMechanism::Create({golden.at("cells"), golden.at("ask"),
                                                golden.at("focus"), golden.at("epsilon")}));
    const std::vector<double> overlaps = mechanism.OverlapProbabilities();
    double included = 0;
    for (size_t i = 0; i < golden.at("overlap_values").size(); ++i) {
      const int overlap = golden.at("overlap_values")[i];
      const double expected = golden.at("overlap_probabilities")[i];
      EXPECT_NEAR(overlaps[static_cast<size_t>(overlap)], expected, 1e-11 * expected);
      included += overlap * overlaps[static_cast<size_t>(overlap)];
    }
    const double share = golden.at("ask").get<double>() / golden.at("cells").get<double>();
    EXPECT_NEAR(included / golden.at("focus").get<double>(), golden.at("any_best_cell_included"),
                1e-11);
    EXPECT_NEAR(CellCeiling(golden.at("epsilon"), share), golden.at("ceiling"), 1e-12);
  }
}

TEST(ReplaceTargetGolden, MatchesReferenceAndExceedsAdversary) {
  ASSERT_EQ(Golden().at("replace_target_sensitivity").size(), 4u);
  for (const json& golden : Golden().at("replace_target_sensitivity")) {
    const double bandwidth = golden.at("sigma");
    const double c = 2 * bandwidth * bandwidth;
    const std::string graph = golden.at("label_graph");
    const LabelGraphKind kind = graph == "distance" ? LabelGraphKind::kDistance
                                : graph == "kernel" ? LabelGraphKind::kKernel
                                                    : LabelGraphKind::kOneHotKernel;
    const LabelGraph label_graph(golden.at("labels").get<std::vector<int32_t>>(), kind, c);
    const Matrix start = MatrixFrom(golden.at("start"));
    ASSERT_OK_AND_ASSIGN(const auto bound,
                         ReplaceTargetSensitivity({.start = start,
                                                   .label_graph = label_graph,
                                                   .alpha = golden.at("alpha"),
                                                   .kernel_denominator = c,
                                                   .slots = golden.at("n_targets")},
                                                  golden.at("changed_rows")));
    ExpectSame(bound, golden.at("bound"));
    EXPECT_GE(bound, golden.at("largest_change_seen_by_search").get<double>());
  }
}

// Below by no more than 1e-12, above by no more than 1e-6.
TEST(GaussianStddevGolden, IsRoundedUp) {
  ASSERT_EQ(Golden().at("gaussian_stddev_per_unit_l2").size(), 18u);
  for (const json& golden : Golden().at("gaussian_stddev_per_unit_l2")) {
    ASSERT_OK_AND_ASSIGN(const auto analytic,
                         AnalyticGaussianStddev(golden.at("epsilon"), golden.at("delta")));
    const double expected = golden.at("analytic");
    EXPECT_GE(analytic, expected * (1 - 1e-12)) << golden;
    EXPECT_LE(analytic, expected * (1 + 1e-6)) << golden;
    ASSERT_OK_AND_ASSIGN(const auto classical,
                         PublishedGaussianStddev(golden.at("epsilon"), golden.at("delta")));
    ExpectSame(classical, golden.at("classical"));
  }
}

// A deviation is below the smallest by no more than 1e-12 and above it by no more than 1e-6.
// `accuracy`: how far the golden variance itself may be off.
void ExpectCalibrated(double stddev, double golden_variance, double accuracy = 0) {
  EXPECT_GE(stddev, std::sqrt(golden_variance - accuracy) * (1 - 1e-12));
  EXPECT_LE(stddev, std::sqrt(golden_variance + accuracy) * (1 + 1e-6));
}
constexpr double kBrentTolerance = 1e-9;  // xtol with which make_golden.py solves the theorems

TEST(BoundedGaussianGolden, ReproducesTableOne) {
  const json& golden = Golden().at("bounded_gaussian_table_1");
  ASSERT_OK_AND_ASSIGN(const auto widths, BoxWidths(golden.at("lower").get<std::vector<double>>(),
                                                    golden.at("upper").get<std::vector<double>>()));
  ASSERT_EQ(golden.at("rows").size(), 7u);
  for (const json& row : golden.at("rows")) {
    ASSERT_OK_AND_ASSIGN(
        const auto published,
        CalibratePublishedBoundedGaussian(widths, golden.at("l2_sensitivity"), row.at("epsilon")));
    const double variance = published.stddev * published.stddev;
    EXPECT_NEAR(variance, row.at("variance_printed_in_paper"), .1);
    EXPECT_NEAR(variance, row.at("variance"), .1);
    ExpectCalibrated(published.stddev, row.at("variance"), kBrentTolerance);
    ASSERT_OK_AND_ASSIGN(
        const auto exact,
        CalibrateBoundedGaussian(widths, golden.at("l2_sensitivity"), row.at("epsilon")));
    EXPECT_LT(exact.stddev, published.stddev);
  }
}

// The privacy loss of N(v, s^2) conditioned on [0, w] in fifty digits: ln p_v(w) rises and is
// concave in v, so a move from 0 costs most.
using Real = boost::multiprecision::cpp_bin_float_50;

Real LossInOneDimension(double width, double l2_sensitivity, double stddev) {
  const Real w = width;
  const Real root = stddev * sqrt(Real(2));
  const auto ln_density_at_the_end = [&](const Real& v) -> Real {
    const Real mass =
        (boost::math::erf(Real((w - v) / root)) + boost::math::erf(Real(v / root))) / 2;
    return -pow(Real((w - v) / root), 2) - log(mass);
  };
  return ln_density_at_the_end(std::min(width, l2_sensitivity)) - ln_density_at_the_end(0);
}

TEST(BoundedGaussianGolden, OneDimensionMatchesExactAndPublishedVariance) {
  ASSERT_EQ(Golden().at("bounded_gaussian_univariate").size(), 4u);
  for (const json& golden : Golden().at("bounded_gaussian_univariate")) {
    const std::vector<double> width = {golden.at("width").get<double>()};
    ASSERT_OK_AND_ASSIGN(
        const auto exact,
        CalibrateBoundedGaussian(width, golden.at("l2_sensitivity"), golden.at("epsilon")));
    const double variance = golden.at("variance_exact");
    ExpectCalibrated(exact.stddev, variance);
    EXPECT_NEAR(exact.stddev * exact.stddev, variance, 1e-6 * std::min(1., variance));
    EXPECT_LE(LossInOneDimension(golden.at("width"), golden.at("l2_sensitivity"), exact.stddev),
              Real(golden.at("epsilon").get<double>()));
    ASSERT_OK_AND_ASSIGN(const auto published,
                         CalibratePublishedBoundedGaussian(width, golden.at("l2_sensitivity"),
                                                           golden.at("epsilon")));
    ExpectCalibrated(published.stddev, golden.at("variance_theorem_6"), kBrentTolerance);
  }
}

TEST(InferencePrivacyGolden, CalibrationMatchesReference) {
  const json& golden = Golden().at("inference_privacy");
  ASSERT_EQ(golden.at("lap_output_scale").size(), 2u);
  for (const json& row : golden.at("lap_output_scale")) {
    ASSERT_OK_AND_ASSIGN(
        const auto laplace,
        CalibrateLapOutput(row.at("epsilon"), {.radius = row.at("alpha")}, row.at("mu")));
    ExpectSame(laplace.scale, row.at("scale"));
    EXPECT_GE(laplace.scale, row.at("scale").get<double>() * (1 - 1e-15));
  }
  ASSERT_EQ(golden.at("gauss_output_stddev").size(), 3u);
  for (const json& row : golden.at("gauss_output_stddev")) {
    const NeighbourBall ball{.radius = row.at("alpha")};
    ASSERT_OK_AND_ASSIGN(
        const auto analytic,
        CalibrateGaussOutput(row.at("epsilon"), row.at("delta"), ball, row.at("mu")));
    const double smallest = row.at("analytic");
    ExpectCalibrated(analytic.stddev, smallest * smallest);
    ASSERT_OK_AND_ASSIGN(
        const auto published,
        CalibratePublishedGaussOutput(row.at("epsilon"), row.at("delta"), ball, row.at("mu")));
    ExpectSame(published.stddev, row.at("published"));
  }
}

void ExpectConstants(const PublishedLaplaceConstants& constants, const json& golden) {
  ExpectSame(constants.z_ij_min, golden.at("z_ij_min"));
  ExpectSame(constants.z_ij_max, golden.at("z_ij_max"));
  ExpectSame(constants.z_ii_min, golden.at("z_ii_min"));
  ExpectSame(constants.z_ii_max, golden.at("z_ii_max"));
  ExpectSame(constants.phi_min, golden.at("phi_min"));
  ExpectSame(constants.phi_max, golden.at("phi_max"));
}

TEST(PublishedLaplaceGolden, OneHotLabelsMatchPrintedFormulas) {
  ASSERT_EQ(Golden().at("published_laplace_sensitivity").size(), 3u);
  for (const json& golden : Golden().at("published_laplace_sensitivity")) {
    ASSERT_OK_AND_ASSIGN(
        const auto constants,
        PublishedLaplaceOneHot(golden.at("n"), golden.at("alpha"), golden.at("sigma")));
    ExpectConstants(constants, golden);
    ASSERT_OK_AND_ASSIGN(const auto ln_beta,
                         PublishedLaplaceLnBeta(golden.at("n"), golden.at("k")));
    ExpectSame(ln_beta, golden.at("ln_beta"));
    ASSERT_OK_AND_ASSIGN(const auto sensitivity,
                         PublishedLaplaceSensitivity(constants, golden.at("n"), golden.at("k"),
                                                     golden.at("ln_beta"), golden.at("sigma_q")));
    ExpectSame(sensitivity, golden.at("delta_bound"));
  }
}

TEST(PublishedLaplaceGolden, IntegerLabelsMatchPrintedFormulas) {
  ASSERT_EQ(Golden().at("published_laplace_sensitivity_integer_labels").size(), 2u);
  for (const json& golden : Golden().at("published_laplace_sensitivity_integer_labels")) {
    ASSERT_OK_AND_ASSIGN(const auto constants,
                         PublishedLaplaceInteger(golden.at("n"), golden.at("alpha"),
                                                 golden.at("sigma"), golden.at("c")));
    ExpectConstants(constants, golden);
  }
}

}  // namespace
}  // namespace privatemail::client
