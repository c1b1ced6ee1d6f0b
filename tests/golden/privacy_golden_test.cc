#include "client/privacy/mechanisms/bounded_gaussian_calibration.h"
#include "client/privacy/mechanisms/calibration.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "tests/golden/golden.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

using nlohmann::json;

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
                                                  golden.at("changed_rows"), Norm::kL2));
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
        const double published,
        PublishedBoundedGaussianStddev(widths, golden.at("l2_sensitivity"), row.at("epsilon")));
    const double variance = published * published;
    EXPECT_NEAR(variance, row.at("variance_printed_in_paper"), .1);
    EXPECT_NEAR(variance, row.at("variance"), .1);
    ExpectCalibrated(published, row.at("variance"), kBrentTolerance);
    ASSERT_OK_AND_ASSIGN(
        const double exact,
        BoundedGaussianStddev(widths, golden.at("l2_sensitivity"), row.at("epsilon")));
    EXPECT_LT(exact, published);
  }
}

TEST(BoundedGaussianGolden, OneDimensionMatchesExactAndPublishedVariance) {
  ASSERT_EQ(Golden().at("bounded_gaussian_univariate").size(), 4u);
  for (const json& golden : Golden().at("bounded_gaussian_univariate")) {
    const std::vector<double> width = {golden.at("width").get<double>()};
    ASSERT_OK_AND_ASSIGN(
        const double exact,
        BoundedGaussianStddev(width, golden.at("l2_sensitivity"), golden.at("epsilon")));
    const double variance = golden.at("variance_exact");
    ExpectCalibrated(exact, variance);
    EXPECT_NEAR(exact * exact, variance, 1e-6 * std::min(1., variance));
    ASSERT_OK_AND_ASSIGN(
        const double published,
        PublishedBoundedGaussianStddev(width, golden.at("l2_sensitivity"), golden.at("epsilon")));
    ExpectCalibrated(published, golden.at("variance_theorem_6"), kBrentTolerance);
  }
}

TEST(InferencePrivacyGolden, CalibrationMatchesReference) {
  const json& golden = Golden().at("inference_privacy");
  const auto stddev = [](MechanismKind kind, const json& row) {
    MechanismParameters parameters{.kind = kind,
                                   .epsilon = row.at("epsilon"),
                                   .radius = row.at("alpha").get<double>(),
                                   .lipschitz = row.at("mu").get<double>()};
    if (row.contains("delta")) parameters.delta = row.at("delta").get<double>();
    return Calibrate(parameters, 1)->stddev;
  };
  ASSERT_EQ(golden.at("lap_output_scale").size(), 2u);
  for (const json& row : golden.at("lap_output_scale")) {
    const double scale = stddev(MechanismKind::kLapOutput, row) / M_SQRT2;
    ExpectSame(scale, row.at("scale"));
    EXPECT_GE(scale, row.at("scale").get<double>() * (1 - 1e-15));
  }
  ASSERT_EQ(golden.at("gauss_output_stddev").size(), 3u);
  for (const json& row : golden.at("gauss_output_stddev")) {
    const double smallest = row.at("analytic");
    ExpectCalibrated(stddev(MechanismKind::kGaussOutput, row), smallest * smallest);
    ExpectSame(stddev(MechanismKind::kPublishedGaussOutput, row), row.at("published"));
  }
}

}  // namespace
}  // namespace privatemail::client
