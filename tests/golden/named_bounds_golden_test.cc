// The bounds of `privatemail sensitivity` by their names, against golden.json or the one-column
// oracle.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "client/privacy/sensitivity/named_bounds.h"
#include "tests/golden/golden.h"
#include "tests/golden/one_column_bounds.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

using nlohmann::json;

using namespace one_column;  // the oracle

// Anchor labels that cycle through the classes.
BoundRequest Request(const std::string& bound, int64_t slots, int64_t anchors) {
  BoundRequest request{.bound = bound, .seed = kSeed};
  for (int64_t i = 0; i < anchors; ++i) {
    request.anchor_labels.push_back(static_cast<int32_t>(i % slots));
  }
  request.settings.start_stddev = 1;
  return request;
}

BoundRequest OneColumnRequest(const std::string& bound) {
  BoundRequest request = Request(bound, kSlots, kAnchors);
  request.settings.kernel_bandwidth = kBandwidth;
  request.settings.alpha = kAlpha;
  request.settings.embedding_dim = 1;
  request.settings.label_graph = LabelGraphKind::kOneHotKernel;
  return request;
}

void ExpectValues(const BoundRequest& request, bool proven, int64_t rows,
                  const std::vector<std::pair<std::string, double>>& expected) {
  ASSERT_OK_AND_ASSIGN(const NamedBound bound, ComputeBound(request));
  EXPECT_EQ(bound.proven, proven);
  EXPECT_EQ(bound.rows, rows);
  ASSERT_EQ(bound.values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(bound.values[i].key, expected[i].first);
    ExpectSame(bound.values[i].value, expected[i].second);
  }
}

TEST(NamedBounds, ProvenBoundsMatchFormulas) {
  const OneColumn oracle;
  const Norms any = ReplaceTarget(oracle, 2);
  ExpectValues(OneColumnRequest("replace-target"), true, kRows,
               {{"sensitivity", any.l2}, {"l1_sensitivity", any.l1}});
  const Norms constant = Lipschitz(oracle);
  ExpectValues(OneColumnRequest("lipschitz"), true, kRows,
               {{"lipschitz_to_l2", constant.l2}, {"lipschitz_to_l1", constant.l1}});
  std::mt19937 bits(3);
  std::normal_distribution<float> normal;
  BoundRequest request = OneColumnRequest("known-anchors");
  request.anchors = FloatMatrix::NullaryExpr(kAnchors, 5, [&] { return normal(bits); });
  const Matrix unit = request.anchors->cast<double>().rowwise().normalized();
  for (const int changed : {1, 2}) {
    request.changed = changed;
    const Norms known = KnownAnchors(oracle, unit, changed);
    ASSERT_LT(known.l2, ReplaceTarget(oracle, changed).l2) << "or the other is returned";
    ASSERT_LT(known.l1, ReplaceTarget(oracle, changed).l1);
    ExpectValues(request, true, kRows, {{"sensitivity", known.l2}, {"l1_sensitivity", known.l1}});
  }
}

BoundRequest PublishedRequest(const std::string& bound, const json& golden, int64_t slots) {
  BoundRequest request = Request(bound, slots, golden.at("n").get<int64_t>() - slots);
  request.settings.kernel_bandwidth = golden.at("sigma");
  request.settings.alpha = golden.at("alpha");
  return request;
}

TEST(NamedBounds, PublishedGaussianMatchesGoldenTimesStartNorm) {
  ASSERT_EQ(Golden().at("published_gaussian_sensitivity").size(), 5u);
  for (const json& golden : Golden().at("published_gaussian_sensitivity")) {
    const int64_t n = golden.at("n");
    const double norm = LengthOf(Start(static_cast<int>(2 * n)));
    ExpectValues(PublishedRequest("published-gaussian", golden, golden.at("c").get<int64_t>() + 1),
                 false, n, {{"sensitivity", golden.at("delta_as_printed").get<double>() * norm}});
  }
}

TEST(NamedBounds, PublishedLaplaceOneHotLabelsMatchGolden) {
  ASSERT_EQ(Golden().at("published_laplace_sensitivity").size(), 3u);
  for (const json& golden : Golden().at("published_laplace_sensitivity")) {
    BoundRequest request = PublishedRequest("published-laplace", golden, kSlots);
    request.settings.label_graph = LabelGraphKind::kOneHotKernel;
    request.settings.embedding_dim = golden.at("k");
    ASSERT_EQ(golden.at("sigma_q"), 1);
    ExpectValues(request, false, golden.at("n"), {{"sensitivity", golden.at("delta_bound")}});
  }
}

// Golden.json has phi for these; corollary 1.1 at ln beta = -4 k n is a line more.
TEST(NamedBounds, PublishedLaplaceIntegerLabelsMatchGolden) {
  ASSERT_EQ(Golden().at("published_laplace_sensitivity_integer_labels").size(), 2u);
  for (const json& golden : Golden().at("published_laplace_sensitivity_integer_labels")) {
    const double n = golden.at("n");
    const double k = 3;
    const double phi_min = golden.at("phi_min");
    const double phi_max = golden.at("phi_max");
    const double squared = 4 * k * n * std::pow(phi_max, 4) / (phi_min * phi_min) -
                           2 * std::sqrt(k * n * 4 * k * n * std::pow(phi_min, 4));
    BoundRequest request =
        PublishedRequest("published-laplace", golden, golden.at("c").get<int64_t>() + 1);
    request.settings.label_graph = LabelGraphKind::kKernel;
    request.settings.embedding_dim = 3;
    ExpectValues(request, false, golden.at("n"), {{"sensitivity", std::sqrt(squared) / 2}});
  }
}

TEST(NamedBounds, PrintedDegreesThatAreNegativeAreRefused) {
  BoundRequest narrow = OneColumnRequest("published-laplace");
  narrow.settings.kernel_bandwidth = .1;
  EXPECT_THAT(ComputeBound(narrow), FailsWith(kFailedPrecondition, "printed degrees"));
}

TEST(NamedBounds, MissingOrUnusedFieldIsNamed) {
  const auto expect_refused = [](const BoundRequest& request, const char* part) {
    EXPECT_THAT(ComputeBound(request), FailsWith(kInvalid, part));
  };
  BoundRequest request = OneColumnRequest("known-anchors");
  expect_refused(request, "anchors must be given with bound known-anchors");
  request.anchors = FloatMatrix(FloatMatrix::Ones(3, 2));
  expect_refused(request, "anchors must have a row for each of the 20 labels, but has 3");
  request.bound = "replace-target";
  expect_refused(request, "anchors is not accepted by bound replace-target");
  request = OneColumnRequest("lipschitz");
  request.changed = 1;
  expect_refused(request, "changed is not accepted by bound lipschitz");
  for (const char* bound : {"published-gaussian", "published-laplace"}) {
    request = OneColumnRequest(bound);
    request.settings.kernel = KernelConvention::kSigma;
    expect_refused(request, "kernel must be two_sigma_squared");
  }
  expect_refused(OneColumnRequest("worst"), "bound must be one of known-anchors, ");
}

}  // namespace
}  // namespace privatemail::client
