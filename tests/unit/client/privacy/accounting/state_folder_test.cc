#include "privatemail/state_folder.h"

#include <sys/stat.h>

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
  ASSERT_EQ(::chmod(path.c_str(), 0750), 0);
  EXPECT_THAT(CreateStateFolder(path), FailsWith(kPermissionDenied, "must be mode 0700"));
}

}  // namespace
}  // namespace privatemail::client
