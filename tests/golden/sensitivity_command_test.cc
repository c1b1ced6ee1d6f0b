// `privatemail sensitivity`, against the one-column oracle: the flags reach the bound.
#include <gmock/gmock.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/golden/golden.h"
#include "tests/golden/one_column_bounds.h"
#include "tests/testing/npy.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

using nlohmann::json;
using namespace client::one_column;  // the oracle

// Output as JSON, errors included.
json Answer(const std::string& flags) {
  const std::string command =
      absl::StrCat(PRIVATEMAIL, " --json sensitivity ", flags, " 2>/dev/null");
  std::FILE* const out = popen(command.c_str(), "r");
  std::string text;
  for (int byte = std::fgetc(out); byte != EOF; byte = std::fgetc(out)) {
    text += static_cast<char>(byte);
  }
  pclose(out);
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

TEST(SensitivityCommand, FlagsReachTheBound) {
  const TemporaryFolder folder;
  std::vector<int32_t> labels;
  for (int i = 0; i < kAnchors; ++i) labels.push_back(i % kSlots);
  ASSERT_TRUE(testing::WriteNpy(folder / "labels.npy", labels).ok());
  std::mt19937 bits(3);
  std::normal_distribution<float> normal;
  const FloatMatrix anchors = FloatMatrix::NullaryExpr(kAnchors, 5, [&] { return normal(bits); });
  ASSERT_TRUE(testing::WriteNpy(folder / "anchors.npy", anchors).ok());
  const std::string flags = absl::StrCat(
      "--targets ", kSlots, " --anchor-labels ", folder / "labels.npy", " --bandwidth ", kBandwidth,
      " --alpha ", kAlpha, " --dim 1 --label-graph one_hot_kernel --start-stddev 1 --seed ", kSeed);

  const json answer = Answer(
      absl::StrCat(flags, " --bound known-anchors --changed 1 --anchors ", folder / "anchors.npy"));
  const Norms expected =
      KnownAnchors(OneColumn(), anchors.cast<double>().rowwise().normalized(), 1);
  ExpectSame(answer.at("sensitivity"), expected.l2);
  ExpectSame(answer.at("l1_sensitivity"), expected.l1);
  EXPECT_EQ(answer.at("proven"), true);
  EXPECT_EQ(answer.at("bound"), "known-anchors");
  EXPECT_EQ(answer.at("rows"), kRows);
  EXPECT_THAT(answer.at("source"), ::testing::HasSubstr("known_anchors_sensitivity.h"));
  EXPECT_THAT(Answer(flags + " --bound known-anchors").dump(),
              ::testing::HasSubstr("--anchors must be given with bound known-anchors"));
}

}  // namespace
}  // namespace privatemail
