#include "privatemail/state_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

TEST(StateFolder, DefaultFollowsEnvironment) {
  const char* const home = std::getenv("HOME");
  const std::string old_home = home == nullptr ? "" : home;
  ::setenv("HOME", "/home/me", 1);
  ::setenv("XDG_STATE_HOME", "", 1);
  ::setenv("PRIVATEMAIL_STATE", "", 1);
  EXPECT_EQ(DefaultStateFolder(), "/home/me/.local/state/privatemail");
  ::setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(DefaultStateFolder(), "/state/privatemail");
  ::setenv("PRIVATEMAIL_STATE", "/mine", 1);
  EXPECT_EQ(DefaultStateFolder(), "/mine");
  EXPECT_EQ(LedgerPath("/mine"), "/mine/ledger.sqlite");
  ::unsetenv("PRIVATEMAIL_STATE");
  ::unsetenv("XDG_STATE_HOME");
  ::setenv("HOME", old_home.c_str(), 1);
}

TEST(StateFolder, CreatedForOwnerOnly) {
  const TemporaryFolder folder;
  const std::string path = folder / "new" + "/state";
  ASSERT_THAT(CreateStateFolder(path), IsOk());
  EXPECT_THAT(CreateStateFolder(path), IsOk()) << "exists";
  // As umasks, chmod -R and Kubernetes fsGroup leave it.
  for (const mode_t mode : {0750U, 0755U, 02770U, 0775U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_THAT(CreateStateFolder(path), IsOk());
    struct stat properties = {};
    ASSERT_EQ(::stat(path.c_str(), &properties), 0);
    EXPECT_EQ(properties.st_mode & 0777U, 0700U);
  }
  folder.Write("new/state/notes.txt", "mine");
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  EXPECT_THAT(CreateStateFolder(path),
              FailsWith(kPermissionDenied, "must be mode 0700 and its user's, but is 0755"))
      << "a folder of other things";
  folder.Write("new/state/ledger.sqlite", "");
  EXPECT_THAT(CreateStateFolder(path), IsOk());
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  EXPECT_THAT(CreateStateFolder(path),
              FailsWith(kPermissionDenied, "must be mode 0700 and its user's, but is 0777"));
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  if (::geteuid() != 0) return;  // nobody else may give it away
  ASSERT_EQ(::chown(path.c_str(), 1, 1), 0);
  EXPECT_THAT(CreateStateFolder(path), FailsWith(kPermissionDenied, "is 0755 and of user 1"));
}

}  // namespace
}  // namespace privatemail::client
