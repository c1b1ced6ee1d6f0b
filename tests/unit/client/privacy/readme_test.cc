// The table of mechanisms in client/privacy/README.md against the code.

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

struct Row {
  std::string theorem;
  std::string needs;
  std::string gives;
  std::string verdict;  // "proven" or "printed"
};

std::map<std::string, Row> MechanismsOfTheReadme() {
  std::map<std::string, Row> rows;
  std::ifstream in(PRIVATEMAIL_PRIVACY_README);
  bool in_table = false;
  for (std::string line; std::getline(in, line);) {
    if (absl::StartsWith(line, "| `--mechanism`")) {
      in_table = true;
    } else if (!absl::StartsWith(line, "|")) {
      in_table = false;
    } else if (in_table && !absl::StartsWith(line, "|---")) {
      std::vector<std::string> cells = absl::StrSplit(line, '|');
      for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
      EXPECT_EQ(cells.size(), 7u) << line;
      EXPECT_TRUE(rows.insert({cells[1], {cells[2], cells[3], cells[4], cells[5]}}).second) << line;
    }
  }
  return rows;
}

MechanismParameters With(const MechanismTraits& traits, absl::string_view needs) {
  MechanismParameters parameters{.kind = traits.kind};
  if (absl::StrContains(needs, "epsilon")) parameters.epsilon = 1;
  if (absl::StrContains(needs, "delta")) parameters.delta = 1e-5;
  if (absl::StrContains(needs, "sensitivity")) parameters.sensitivity = 1;
  if (absl::StrContains(needs, "box")) parameters.box = {{-9}, {9}};
  if (absl::StrContains(needs, "radius")) parameters.radius = 1;
  if (absl::StrContains(needs, "Lipschitz")) parameters.lipschitz = 1;
  return parameters;
}

TEST(Readme, MechanismTableMatchesCode) {
  const std::map<std::string, Row> rows = MechanismsOfTheReadme();
  EXPECT_EQ(rows.size(), AllMechanisms().size());
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    const auto found = rows.find(absl::StrCat("`", traits.name, "`"));
    ASSERT_NE(found, rows.end());
    const Row& row = found->second;
    ASSERT_OK_AND_ASSIGN(const Calibration noise, Calibrate(With(traits, row.needs), 2));
    const Guarantee& guarantee = noise.guarantee;
    EXPECT_EQ(row.verdict, guarantee.proven ? "proven" : "printed");
    EXPECT_EQ(absl::StrContains(row.needs, "delta"), guarantee.delta > 0);
    EXPECT_EQ(absl::StrContains(row.needs, "dimension"),
              traits.protects == MechanismTraits::Protects::kInput);
    EXPECT_EQ(absl::StrContains(row.needs, "L1"), traits.law == MechanismTraits::Law::kLaplace);
    if (!guarantee.proven) {
      EXPECT_EQ(row.gives, "–");
      EXPECT_THAT(guarantee.source, ::testing::HasSubstr("as published"));
      continue;
    }
    EXPECT_EQ(absl::StrContains(row.gives, "(epsilon, delta)"), guarantee.delta > 0);
    EXPECT_EQ(absl::StrContains(row.gives, "mu"), guarantee.gaussian_mu.has_value());
    EXPECT_EQ(absl::StrContains(row.gives, "within the radius"), guarantee.radius.has_value());
    // The page cites the source of the guarantee.
    for (const char* name : {"Balle", "Dwork", "theorem 1", "proposition 1"}) {
      if (absl::StrContains(guarantee.source, name) && !absl::StrContains(row.theorem, "as `")) {
        EXPECT_THAT(row.theorem, ::testing::HasSubstr(name));
      }
    }
  }
}

}  // namespace
}  // namespace privatemail::client
