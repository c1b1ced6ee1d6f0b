// A daemon on a full disk, simulated by a limit of file sizes (prlimit): it refuses changes naming
// the file, loses nothing, answers searches, and works again with space.
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/e2e/service.h"
#include "tests/e2e/writers.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/daemon/http_client.h"

namespace privatemail::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FullDisk : public Service {
 protected:
  void LimitFilesTo(rlim_t bytes) {
    const rlimit limit = {bytes, RLIM_INFINITY};
    ASSERT_EQ(::prlimit(daemon_->program().pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  }
  void LiftLimit() { LimitFilesTo(RLIM_INFINITY); }

  rlim_t LargestFile() const {
    rlim_t largest = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "data")) {
      if (entry.is_regular_file()) largest = std::max<rlim_t>(largest, entry.file_size());
    }
    return largest;
  }

  std::map<std::string, v1::Item> Stored() const {
    const auto stored = StoredItems(Connect(), "things");
    EXPECT_THAT(stored, IsOk());
    return stored.value_or(std::map<std::string, v1::Item>());
  }

  // The value of a metric, or "none".
  std::string Metric(const std::string& name) const {
    const std::string metrics = privatemail::testing::HttpGet(daemon_->http(), "/metrics");
    const size_t at = metrics.find("\n" + name + " ");
    if (at == std::string::npos) return "none";
    const size_t value = at + name.size() + 2;
    return metrics.substr(value, metrics.find('\n', value) - value);
  }

  absl::Status BuildStatus() const {
    return Connect()
        .BuildEmbedding(
            "things", [](const auto& /*progress*/) {}, /*accept_misalignment=*/true)
        .status();
  }
};

// Only keys for the whole daemon see paths in messages; the log shows them at every level.
TEST_F(FullDisk, WriterAndCollectionAdminSeeNoPath) {
  daemon_ = std::make_unique<Daemon>(
      folder_ / "data",
      std::vector<std::string>{"--http", "127.0.0.1:0", "--log-level", "warning"});
  ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
  ConnectionOptions options;
  options.server = daemon_->address();
  options.trust_fingerprint = daemon_->fingerprint();
  options.key_file = daemon_->admin_key();
  const AdminClient admin = *AdminClient::Create(options);
  ASSERT_THAT(admin.CreateCollection(NewThings()), IsOk());
  const auto with_new_key = [&](v1::KeyScope scope, const std::vector<std::string>& collections) {
    v1::CreateKeyRequest request;
    request.set_name("test");
    request.add_scopes(scope);
    request.mutable_collections()->Assign(collections.begin(), collections.end());
    const auto made = admin.CreateKey(request);
    EXPECT_THAT(made, IsOk());
    options.key_file = folder_.Write(made->key().id() + ".key", made->text() + "\n");
    EXPECT_EQ(::chmod(options.key_file.c_str(), 0600), 0);
    return *AdminClient::Create(options);
  };
  const AdminClient writer = with_new_key(v1::KEY_SCOPE_WRITE, {});
  const AdminClient admin_of_one = with_new_key(v1::KEY_SCOPE_ADMIN, {"things"});
  Writer items("a", "things", 1);
  ASSERT_THAT(items.Write(writer, 10), IsOk());
  const std::string full_disks = "privatemail_store_errors_total{code=\"RESOURCE_EXHAUSTED\"}";
  EXPECT_EQ(Metric(full_disks), "0");
  ASSERT_NO_FATAL_FAILURE(LimitFilesTo(LargestFile()));
  EXPECT_THAT(Writer("b", "things", 2).WriteUntilFailure(admin),
              FailsWith(kExhausted, "no space left for database"));
  for (const AdminClient* one : {&writer, &admin_of_one}) {
    const absl::Status told = Writer("c", "things", 3).WriteUntilFailure(*one);
    EXPECT_THAT(told, FailsWith(kExhausted, "the store has no space left"));
    EXPECT_THAT(std::string(told.message()), Not(HasSubstr("/")));
  }
  EXPECT_EQ(Metric(full_disks), "3");
  LiftLimit();
  EXPECT_THAT(items.Write(writer, 10), IsOk());
  daemon_->program().Signal(SIGTERM);
  EXPECT_THAT(daemon_->program().Wait().err, HasSubstr("ERROR no space left for database file " +
                                                       (folder_ / "data/privatemail.sqlite")));
}

// Started after a kill, when there is no space for anything.
TEST_F(FullDisk, DaemonIsReadOnlyUntilThereIsSpace) {
  StartDaemon();
  CreateCollection();
  Fill();
  Writer writer("a", "things", 1);
  ASSERT_THAT(writer.Write(Connect(), 10), IsOk());
  ASSERT_THAT(BuildStatus(), IsOk());
  ASSERT_THAT(writer.Write(Connect(), 10), IsOk());
  daemon_->program().Signal(SIGKILL);
  daemon_->program().Wait();
  // Standard output takes the log as well: a pipe, to which the limit does not apply.
  const std::string limited =
      folder_.Write("limited.sh", "#!/bin/sh\nulimit -S -f 0\nexec " PRIVATEMAILD " \"$@\" 2>&1\n");
  ASSERT_EQ(::chmod(limited.c_str(), 0700), 0);
  daemon_ = std::make_unique<Daemon>(
      folder_ / "data", std::vector<std::string>{"--insecure", "--http", "127.0.0.1:0"},
      "127.0.0.1:0", limited);
  ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().out;
  user_.flags = {"--server", daemon_->address(), "--insecure"};
  EXPECT_THAT(Search(), IsOk());
  EXPECT_THAT(writer.Check(Stored()), ::testing::IsEmpty());
  const nlohmann::json read_only = {{"status", "SERVING"}, {"read_only", true}};
  EXPECT_EQ(Answer({"health", "--collection", "things"}), read_only);
  EXPECT_EQ(Answer({"health"}), read_only);
  EXPECT_EQ(Metric("privatemail_read_only"), "1");
  const auto refused = FailsWith(
      kExhausted, "the store is read-only until there is space: no space left for database file " +
                      (folder_ / "data/privatemail.sqlite"));
  EXPECT_THAT(writer.WriteUntilFailure(Connect()), refused);
  EXPECT_THAT(BuildStatus(), FailsWith(kExhausted, "no space left for database file "));
  EXPECT_THAT(Connect().DeleteCollection("things"), refused);
  EXPECT_THAT(writer.Check(Stored()), ::testing::IsEmpty());
  LiftLimit();
  EXPECT_TRUE(WaitUntil([&] { return Metric("privatemail_read_only") == "0"; }));
  EXPECT_EQ(Answer({"health"})["read_only"], false);
  EXPECT_THAT(writer.Write(Connect(), 10), IsOk());
  EXPECT_THAT(BuildStatus(), IsOk());
  EXPECT_THAT(writer.Check(Stored()), ::testing::IsEmpty());
  daemon_->program().Signal(SIGTERM);
  const Outcome ended = daemon_->program().Wait();
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.out, HasSubstr("ERROR read-only until there is space, searches are served: no "
                                   "space left for database file"));
  EXPECT_THAT(ended.out, HasSubstr("INFO there is space again: the store takes writes"));
  StartDaemon();
  EXPECT_THAT(writer.Check(Stored()), ::testing::IsEmpty());
}

}  // namespace
}  // namespace privatemail::e2e
