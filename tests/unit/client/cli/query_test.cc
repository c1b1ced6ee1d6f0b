// `query`, `explain` and `resend` of encrypted searches, against a server in the test's process.

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/cli/command.h"
#include "client/cli/flags.h"
#include "common/base/field_error.h"
#include "privatemail/ledger.h"
#include "tests/unit/client/search/encrypted_server.h"

namespace privatemail::client::cli {
namespace {

constexpr int kDim = 8;

class QueryEncryptedTest : public ::testing::Test {
 protected:
  QueryEncryptedTest() {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
    const FloatMatrix targets = NormalRows(3, kDim, 2);
    std::ostringstream csv;
    for (int row = 0; row < 3; ++row) {
      for (int i = 0; i < kDim; ++i) csv << (i == 0 ? "" : ",") << targets(row, i);
      csv << "\n";
    }
    vectors_ = folder_.Write("targets.csv", csv.str());
  }

  // Runs the command; what it prints is in output_.
  absl::Status Run(const std::vector<std::string>& words, bool json = true) {
    Context context;
    context.connection = server_.options;
    context.state_folder = folder_.path() + "/state";
    context.json = json;
    CLI::App app;
    AddQueryCommand(app, context);
    AddReplayCommands(app, context);
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    ::testing::internal::CaptureStdout();
    const absl::Status status = context.run();
    output_ = ::testing::internal::GetCapturedStdout();
    return status;
  }

  std::vector<nlohmann::json> Lines() const {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(output_);
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }

  EncryptedThings things_{NormalRows(300, kDim, 1)};
  EncryptedServer server_{&things_};
  TemporaryFolder folder_;
  std::string vectors_;
  std::string output_;
};

TEST_F(QueryEncryptedTest, IsTheDefaultAndSearchesForAllRows) {
  ASSERT_THAT(Run({"query", "things", "--vectors", vectors_, "-k", "2"}), IsOk());
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(server_.TakeRequests().size(), 1U);
  const nlohmann::json& second = lines[1];
  EXPECT_EQ(second["scheme"], "encrypted");
  EXPECT_EQ(second["metric"], "cosine");
  EXPECT_EQ(second["row"], 1);
  EXPECT_EQ(second["targets"], 3);
  EXPECT_EQ(second["candidates"], 300);
  EXPECT_EQ(second["tables"],
            nlohmann::json::array({ToHex(Sha256::Of(Sha256::Of(things_.TableBlock(0))))}));
  EXPECT_EQ(second["guarantee"]["kind"], "computational");
  EXPECT_EQ(second["guarantee"]["bits"], 128);
  EXPECT_FALSE(second.contains("ledger"));
  EXPECT_EQ(second["bytes"]["keys"], lattice::KeysBytes(32));
  ASSERT_EQ(second["matches"].size(), 2U);
  // Four decimals: what is printed tells no more of a score.
  const double similarity = second["matches"][0]["similarity"];
  EXPECT_DOUBLE_EQ(similarity, std::round(similarity * 1e4) / 1e4);
}

TEST_F(QueryEncryptedTest, TextShowsMatchesAndGuarantee) {
  const std::vector<std::string> words = {
      "query", "things",  "--vectors", vectors_,   "--row",
      "0",     "--label", "2",         "--filter", R"({"path":"i","lt":50})"};
  ASSERT_THAT(Run(words), IsOk());
  const nlohmann::json matches = Lines()[0]["matches"];
  ASSERT_THAT(Run(words, /*json=*/false), IsOk());
  for (const nlohmann::json& match : matches) {
    EXPECT_EQ(match["label"], 2);
    EXPECT_NE(output_.find(match["id"].get<std::string>()), std::string::npos) << output_;
  }
  EXPECT_NE(output_.find("encrypted: the server learns nothing of the query (128-bit ring-LWE)"),
            std::string::npos)
      << output_;
}

TEST_F(QueryEncryptedTest, ErrorsNameTheFlag) {
  CLI::App app;
  Context context;
  AddQueryCommand(app, context);
  const CLI::App& query = *app.get_subcommand("query");
  EXPECT_EQ(WithFlagName(FieldError("private_iterations", "1", "0"), query).message(),
            "--private-iterations must be 1, but is 0");
  EXPECT_EQ(WithFlagName(FieldError("k", "1", "0"), query).message(), "-k must be 1, but is 0");
  EXPECT_EQ(WithFlagName(FieldError("budget", "left", "exhausted"), query).message(),
            "budget must be left, but is exhausted; `privatemail budget set NAME --epsilon E "
            "--delta D` sets it");
  OperatorEntry acme;
  acme.name = "acme";
  const absl::Status exhausted = FieldError("budget", "left " + SumOf(acme), "exhausted");
  EXPECT_THAT(std::string(WithFlagName(exhausted, query).message()),
              ::testing::EndsWith(
                  "; `privatemail budget set --operator \"acme\" --epsilon E --delta D` sets it"));
  const absl::Status other = absl::InvalidArgumentError("k must be 1");
  EXPECT_EQ(WithFlagName(other, query), other);
}

TEST_F(QueryEncryptedTest, ExplainShowsSizesAndNothingThatWasDecrypted) {
  ASSERT_THAT(Run({"query", "things", "--vectors", vectors_}), IsOk());
  const nlohmann::json tables = Lines()[0]["tables"];
  const std::string nearest = Lines()[0]["matches"][0]["id"];
  ASSERT_THAT(Run({"explain"}), IsOk());
  EXPECT_EQ(Lines()[0]["tables"], tables);
  EXPECT_EQ(Lines()[0]["queries"], 3);
  EXPECT_EQ(output_.find(nearest), std::string::npos);
  // The second search knows the block of the first one.
  ASSERT_THAT(Run({"query", "things", "--vectors", vectors_}), IsOk());
  ASSERT_THAT(Run({"explain"}, /*json=*/false), IsOk());
  EXPECT_NE(output_.find("known blocks"), std::string::npos) << output_;
  EXPECT_EQ(output_.find(tables[0].get<std::string>()), std::string::npos);
  EXPECT_THAT(Run({"resend", "--label", "1"}), FailsWith(kFailedPrecondition, "search again"));
}

}  // namespace
}  // namespace privatemail::client::cli
