#include "client/cli/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client::cli {
namespace {

const PlannedQuery kQuery{.collection = "fruit",
                          .fingerprint = std::string(31, '\xfe') + '\x01',
                          .cost = {.partition = 1, .ask = 2, .focus = 3, .epsilon = .1},
                          .items = 800,
                          .k = 5};

class PlanFile : public ::testing::Test {
 protected:
  absl::StatusOr<PlannedQuery> Read(const std::string& text) const {
    std::ofstream(path_) << text;
    return ReadPlan(path_);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "plan.json";
};

TEST_F(PlanFile, RoundTrips) {
  ASSERT_OK_AND_ASSIGN(const PlannedQuery read, Read(PlanText(kQuery)));
  EXPECT_EQ(read.collection, "fruit");
  EXPECT_EQ(read.fingerprint, kQuery.fingerprint);
  EXPECT_EQ(read.cost.partition, 1);
  EXPECT_EQ(read.cost.ask, 2);
  EXPECT_EQ(read.cost.focus, 3);
  EXPECT_EQ(read.cost.epsilon, .1) << "to the last bit";
  EXPECT_EQ(read.items, 800);
  EXPECT_EQ(read.k, 5);
}

TEST_F(PlanFile, MissingOrMistypedFieldIsNamed) {
  const auto good = nlohmann::json::parse(PlanText(kQuery));
  ASSERT_EQ(good.size(), 9U);
  for (const auto& [field, value] : good.items()) {
    nlohmann::json bad = good;
    bad.erase(field);
    EXPECT_THAT(Read(bad.dump()), FailsWith(kInvalid, field + " is missing or of another type"));
    bad[field] = nlohmann::json::array();
    EXPECT_THAT(Read(bad.dump()), FailsWith(kInvalid, field + " is missing or of another type"));
  }
  for (const char* whole : {"partition", "ask", "focus", "items", "k"}) {
    nlohmann::json bad = good;
    bad[whole] = 1.5;
    EXPECT_THAT(Read(bad.dump()), FailsWith(kInvalid, whole));
    bad[whole] = 18446744073709551615U;
    EXPECT_THAT(Read(bad.dump()),
                FailsWith(kInvalid, std::string(whole) + " is 18446744073709551615, which is too"));
  }
}

TEST_F(PlanFile, OtherFilesAreRefused) {
  EXPECT_THAT(ReadPlan(folder_ / "nowhere"), FailsWith(kInvalid, "cannot read --plan "));
  EXPECT_THAT(ReadPlan("/dev/zero"), FailsWith(kInvalid, "cannot read --plan /dev/zero"));
  EXPECT_THAT(Read("{"), FailsWith(kInvalid, "it holds no JSON object"));
  EXPECT_THAT(Read("[]"), FailsWith(kInvalid, "it holds no JSON object"));
  auto bad = nlohmann::json::parse(PlanText(kQuery));
  bad["scheme"] = "joint";
  EXPECT_THAT(Read(bad.dump()), FailsWith(kInvalid, "scheme must be cells, but is joint"));
  bad = nlohmann::json::parse(PlanText(kQuery));
  for (const char* fingerprint : {"", "fe", "zz"}) {
    bad["fingerprint"] = fingerprint;
    EXPECT_THAT(Read(bad.dump()), FailsWith(kInvalid, "fingerprint must be 64 hexadecimal"));
  }
}

}  // namespace
}  // namespace privatemail::client::cli
