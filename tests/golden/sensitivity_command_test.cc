// `privatemail sensitivity` with each bound, against golden.json or the one-column oracle.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/features/vector_file.h"
#include "tests/golden/golden.h"
#include "tests/golden/one_column_bounds.h"
#include "tests/testing/temporary_folder.h"
#include "tests/testing/npy.h"

namespace privatemail {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using namespace client::one_column;  // the oracle

class SensitivityCommand : public ::testing::Test {
 protected:
  // Anchor labels that cycle through `slots` classes.
  std::string Labels(int64_t slots, int64_t anchors) const {
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < anchors; ++i) labels.push_back(static_cast<int32_t>(i % slots));
    EXPECT_TRUE(testing::WriteNpy(folder_ / "labels.npy", labels).ok());
    return folder_ / "labels.npy";
  }

  // Output for `slots` classes and `anchors` anchors as JSON, errors included.
  json Answer(const std::string& bound, int64_t slots, int64_t anchors,
              const std::string& more) const {
    const std::string command =
        absl::StrCat(PRIVATEMAIL, " --json sensitivity --bound ", bound, " --targets ", slots,
                     " --anchor-labels ", Labels(slots, anchors), " ", more, " 2>/dev/null");
    std::FILE* const out = popen(command.c_str(), "r");
    std::string text;
    for (int byte = std::fgetc(out); byte != EOF; byte = std::fgetc(out)) {
      text += static_cast<char>(byte);
    }
    pclose(out);
    return json::parse(text, nullptr, /*allow_exceptions=*/false);
  }

  static std::string OneColumnOptions() {
    return absl::StrCat("--bandwidth ", kBandwidth, " --alpha ", kAlpha,
                        " --dim 1 --label-graph one_hot_kernel --start-stddev 1 --seed ", kSeed,
                        " ");
  }

  json OneColumnAnswer(const std::string& bound, const std::string& more) const {
    return Answer(bound, kSlots, kAnchors, OneColumnOptions() + more);
  }

  TemporaryFolder folder_;
};

TEST_F(SensitivityCommand, ReplaceTargetMatchesFormula) {
  const json answer = OneColumnAnswer("replace-target", "");
  const Norms expected = ReplaceTarget(OneColumn(), 2);
  ExpectSame(answer.at("sensitivity"), expected.l2);
  ExpectSame(answer.at("l1_sensitivity"), expected.l1);
  EXPECT_EQ(answer.at("proven"), true);
  EXPECT_EQ(answer.at("bound"), "replace-target");
  EXPECT_EQ(answer.at("rows"), kRows);
}

TEST_F(SensitivityCommand, KnownAnchorsMatchesFormula) {
  std::mt19937 bits(3);
  std::normal_distribution<float> normal;
  const FloatMatrix anchors = FloatMatrix::NullaryExpr(kAnchors, 5, [&] { return normal(bits); });
  ASSERT_TRUE(testing::WriteNpy(folder_ / "anchors.npy", anchors).ok());
  const Matrix unit = anchors.cast<double>().rowwise().normalized();
  for (const int changed : {1, 2}) {
    const json answer = OneColumnAnswer(
        "known-anchors",
        absl::StrCat("--anchors ", folder_ / "anchors.npy", " --changed ", changed));
    const Norms expected = KnownAnchors(OneColumn(), unit, changed);
    ASSERT_LT(expected.l2, ReplaceTarget(OneColumn(), changed).l2) << "or the other is printed";
    ASSERT_LT(expected.l1, ReplaceTarget(OneColumn(), changed).l1);
    ExpectSame(answer.at("sensitivity"), expected.l2);
    ExpectSame(answer.at("l1_sensitivity"), expected.l1);
    EXPECT_EQ(answer.at("proven"), true);
  }
}

TEST_F(SensitivityCommand, LipschitzMatchesFormula) {
  const json answer = OneColumnAnswer("lipschitz", "");
  const Norms expected = Lipschitz(OneColumn());
  ExpectSame(answer.at("lipschitz_to_l2"), expected.l2);
  ExpectSame(answer.at("lipschitz_to_l1"), expected.l1);
  EXPECT_EQ(answer.at("proven"), true);
  EXPECT_THAT(answer.at("source"), HasSubstr("lipschitz.h"));
}

std::string Settings(const json& golden) {
  return absl::StrCat("--bandwidth ", golden.at("sigma").get<double>(), " --alpha ",
                      golden.at("alpha").get<double>(), " --start-stddev 1 --seed ", kSeed);
}

TEST_F(SensitivityCommand, PublishedGaussianMatchesGoldenTimesStartNorm) {
  for (const json& golden : Golden().at("published_gaussian_sensitivity")) {
    const int64_t slots = golden.at("c").get<int64_t>() + 1;  // labels 0 .. c
    const int64_t n = golden.at("n");
    const json answer = Answer("published-gaussian", slots, n - slots, Settings(golden));
    ExpectSame(answer.at("sensitivity"),
               golden.at("delta_as_printed").get<double>() * Norm(Start(static_cast<int>(2 * n))));
    EXPECT_EQ(answer.at("proven"), false);
    EXPECT_EQ(answer.at("rows"), n);
  }
}

TEST_F(SensitivityCommand, PublishedLaplaceOneHotLabelsMatchGolden) {
  for (const json& golden : Golden().at("published_laplace_sensitivity")) {
    const int64_t n = golden.at("n");
    const json answer =
        Answer("published-laplace", kSlots, n - kSlots,
               absl::StrCat(Settings(golden), " --label-graph one_hot_kernel --dim ",
                            golden.at("k").get<int>()));
    ASSERT_EQ(golden.at("sigma_q"), 1);
    ExpectSame(answer.at("sensitivity"), golden.at("delta_bound"));
    EXPECT_EQ(answer.at("proven"), false);
  }
}

// Golden.json has phi for these; corollary 1.1 at ln beta = -4 k n is a line more.
TEST_F(SensitivityCommand, PublishedLaplaceIntegerLabelsMatchGolden) {
  for (const json& golden : Golden().at("published_laplace_sensitivity_integer_labels")) {
    const int64_t slots = golden.at("c").get<int64_t>() + 1;
    const double n = golden.at("n");
    const double k = 3;
    const double phi_min = golden.at("phi_min");
    const double phi_max = golden.at("phi_max");
    const double squared = 4 * k * n * std::pow(phi_max, 4) / (phi_min * phi_min) -
                           2 * std::sqrt(k * n * 4 * k * n * std::pow(phi_min, 4));
    const json answer = Answer("published-laplace", slots, golden.at("n").get<int64_t>() - slots,
                               absl::StrCat(Settings(golden), " --label-graph kernel --dim 3"));
    ExpectSame(answer.at("sensitivity"), std::sqrt(squared) / 2);
  }
}

TEST_F(SensitivityCommand, MissingOrUnusedOptionIsNamed) {
  ASSERT_TRUE(testing::WriteNpy(folder_ / "three.npy", FloatMatrix(FloatMatrix::Ones(3, 2))).ok());
  EXPECT_THAT(OneColumnAnswer("known-anchors", "").dump(),
              HasSubstr("--anchors must be given with bound known-anchors"));
  EXPECT_THAT(OneColumnAnswer("replace-target", "--anchors " + folder_ / "three.npy").dump(),
              HasSubstr("--anchors is not accepted by bound replace-target"));
  EXPECT_THAT(OneColumnAnswer("lipschitz", "--changed 1").dump(),
              HasSubstr("--changed is not accepted by bound lipschitz"));
  for (const char* bound : {"published-gaussian", "published-laplace"}) {
    EXPECT_THAT(OneColumnAnswer(bound, "--kernel sigma").dump(),
                HasSubstr("--kernel must be two_sigma_squared"));
  }
  EXPECT_THAT(OneColumnAnswer("worst", "").dump(),
              HasSubstr("--bound must be one of known-anchors, replace-target, lipschitz, "
                        "published-gaussian, published-laplace, but is \\\"worst\\\""));
  EXPECT_THAT(OneColumnAnswer("known-anchors", "--anchors " + folder_ / "three.npy").dump(),
              HasSubstr("--anchors must have a row for each of the 20 labels, but has 3"));
}

}  // namespace
}  // namespace privatemail
