#include "client/cli/plan.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client::cli {
namespace {

const SearchRequest kQuery{.collection = "fruit",
                           .fingerprint = std::string(31, '\xfe') + '\x01',
                           .k = 5,
                           .epsilon = .1,
                           .partition = 1,
                           .ask = 2,
                           .focus = 3,
                           .items = 800};

class PlanFile : public ::testing::Test {
 protected:
  absl::Status Read(const nlohmann::json& plan) { return Read(plan.dump()); }
  absl::Status Read(const std::string& text) {
    std::ofstream(path_) << text;
    return ReadPlan(path_, &request_);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "plan.json";
  const nlohmann::json good_ = nlohmann::json::parse(PlanText(kQuery));
  SearchRequest request_{.collection = "fruit"};
};

TEST_F(PlanFile, RoundTripsAllButK) {
  ASSERT_THAT(Read(PlanText(kQuery)), IsOk());
  EXPECT_EQ(request_.scheme, Scheme::kCells);
  EXPECT_EQ(request_.fingerprint, kQuery.fingerprint);
  EXPECT_EQ(request_.partition, 1);
  EXPECT_EQ(request_.ask, 2);
  EXPECT_EQ(request_.focus, 3);
  EXPECT_EQ(request_.epsilon, .1) << "to the last bit";
  EXPECT_EQ(request_.items, 800);
  EXPECT_EQ(request_.k, SearchRequest().k);
}

TEST_F(PlanFile, MissingOrMistypedFieldIsNamed) {
  ASSERT_EQ(good_.size(), 8U);
  for (const auto& [field, value] : good_.items()) {
    nlohmann::json bad = good_;
    bad.erase(field);
    EXPECT_THAT(Read(bad), FailsWith(kInvalid, field + " is missing or of another type"));
    bad[field] = nlohmann::json::array();
    EXPECT_THAT(Read(bad), FailsWith(kInvalid, field + " is missing or of another type"));
  }
  for (const char* whole : {"partition", "ask", "focus", "items"}) {
    nlohmann::json bad = good_;
    bad[whole] = 1.5;
    EXPECT_THAT(Read(bad), FailsWith(kInvalid, whole));
    bad[whole] = 18446744073709551615U;
    EXPECT_THAT(Read(bad),
                FailsWith(kInvalid, std::string(whole) + " is 18446744073709551615, which is too"));
  }
}

TEST_F(PlanFile, OtherFilesAreRefused) {
  EXPECT_THAT(ReadPlan("/dev/zero", &request_),
              FailsWith(kInvalid, "cannot read --plan /dev/zero"));
  EXPECT_THAT(Read(std::string("{")), FailsWith(kInvalid, "it holds no JSON object"));
  EXPECT_THAT(Read(std::string("[]")), FailsWith(kInvalid, "it holds no JSON object"));
  nlohmann::json bad = good_;
  bad["scheme"] = "joint";
  EXPECT_THAT(Read(bad), FailsWith(kInvalid, "scheme must be cells, but is joint"));
  bad = good_;
  for (const char* fingerprint : {"", "fe", "zz"}) {
    bad["fingerprint"] = fingerprint;
    EXPECT_THAT(Read(bad), FailsWith(kInvalid, "fingerprint must be 64 hexadecimal"));
  }
  bad = good_;
  bad["collection"] = "moths";
  EXPECT_THAT(Read(bad), FailsWith(kInvalid, "plan must be for collection fruit"));
}

}  // namespace
}  // namespace privatemail::client::cli
