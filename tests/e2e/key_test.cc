// Access keys: create, list, revoke, expiry, and calls without a key.
#include <filesystem>
#include <fstream>

#include "tests/e2e/service.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A daemon with its defaults: TLS and keys.
class Keys : public Service {
 protected:
  void SetUp() override {
    daemon_ = std::make_unique<Daemon>(folder_ / "data");
    ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
    user_.flags = {"--server", daemon_->address(), "--trust", daemon_->fingerprint()};
  }

  Outcome With(const std::string& key_file, std::vector<std::string> command) const {
    command.insert(command.end(), {"--key-file", key_file, "--json"});
    return Run(command);
  }
  Outcome Admin(const Command& command) const { return With(daemon_->admin_key(), command); }
};

TEST_F(Keys, DaemonPrintsNoKey) {
  std::string key;
  std::ifstream(daemon_->admin_key()) >> key;
  EXPECT_EQ(Admin({"collection", "list"}).exit_code, 0);
  daemon_->program().Signal(SIGTERM);
  const Outcome ended = daemon_->program().Wait();
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(key.substr(16))));
}

// Scopes: AccessControlTest. Expired keys: KeyRingTest.ExpiredKeyReturnsTimeOfExpiry.
TEST_F(Keys, CreatedKeyHasItsScopeUntilRevoked) {
  const std::string file = folder_ / "reader.key";
  const Outcome outcome = Admin({"key", "create", "reader", "--scope", "search", "--collection",
                                 "fruit", "--rate", "50", "--expires", "30d", "--out", file});
  EXPECT_THAT(outcome.err, HasSubstr("warning: collection fruit"));
  const json made = outcome.json();
  EXPECT_EQ(made["scopes"], json::array({"search"}));
  EXPECT_EQ(made["collections"], json::array({"fruit"}));
  EXPECT_EQ(made["requests_per_second"], 50);
  const int64_t lasts = made["expires_at"].get<int64_t>() - made["created_at"].get<int64_t>();
  EXPECT_NEAR(static_cast<double>(lasts), 30 * 86400, 60);
  EXPECT_EQ(made.count("key"), 0u);
  EXPECT_EQ(ModeOf(file), 0600u);
  EXPECT_THAT(With(file, {"collection", "list"}).json(), IsEmpty());
  EXPECT_EQ(With(file, {"collection", "info", "fish"}).json()["error"]["code"],
            "PERMISSION_DENIED");
  for (const json& key : Admin({"key", "list"}).json()) {
    EXPECT_EQ(key["expires_at"].is_null(), key["name"] == "admin") << key;
  }
  EXPECT_FALSE(Admin({"key", "revoke", made["id"]}).json()["revoked_at"].is_null());
  EXPECT_EQ(With(file, {"collection", "list"}).json()["error"]["code"], "UNAUTHENTICATED");
  EXPECT_EQ(Admin({"key", "list"}).json().size(), 2u);
  const json printed = Admin({"key", "create", "n", "--scope", "write", "--out", "-"}).json();
  EXPECT_THAT(printed["key"].get<std::string>(),
              HasSubstr("pm_" + printed["id"].get<std::string>()));
}

TEST_F(Keys, InvalidScopeOrFileCreatesNoKey) {
  const auto error = [&](const std::string& scope, const std::string& file) {
    return Admin({"key", "create", "n", "--scope", scope, "--out", file}).json()["error"];
  };
  EXPECT_EQ(error("search", folder_.Write("n.key", "of somebody else"))["code"], "ALREADY_EXISTS");
  EXPECT_EQ(error("search", folder_ / "none/n.key")["code"], "INVALID_ARGUMENT");
  EXPECT_THAT(error("all", folder_ / "m.key")["message"].get<std::string>(),
              HasSubstr("--scope must be admin, search or write"));
  EXPECT_EQ(Admin({"key", "list"}).json().size(), 1u) << "no key was made";
}

TEST_F(Keys, HealthOfACollectionRequiresAKey) {
  EXPECT_EQ(Run({"health", "--json"}).json(), (json{{"status", "SERVING"}, {"read_only", false}}));
  const json nameless = Run({"health", "--collection", "things", "--json"}).json()["error"];
  EXPECT_EQ(nameless["code"], "UNAUTHENTICATED");
  EXPECT_EQ(Admin({"health", "--collection", "things"}).json()["error"]["code"], "NOT_FOUND");
  daemon_->program().Signal(SIGTERM);
  EXPECT_EQ(daemon_->program().Wait().exit_code, 0);
  EXPECT_EQ(Run({"health"}).exit_code, 1);
  // Exit code 1 would make a supervisor restart the server.
  EXPECT_EQ(Run({"health", "--key-file", folder_ / "none.key"}).exit_code, 2);
  const std::string open = folder_.Write("open.key", "key");
  std::filesystem::permissions(open, std::filesystem::perms(0644));
  EXPECT_EQ(Run({"health", "--key-file", open}).exit_code, 2);
}

}  // namespace
}  // namespace privatemail::e2e
