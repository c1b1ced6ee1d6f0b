#include "client/queries/server_pair.h"

#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

ServerPair PairOf(const Halves<std::string>& addresses, const Halves<std::string>& keys) {
  return {.addresses = addresses,
          .identities = {ServerIdentity{"certificate of " + keys.a, keys.a},
                         ServerIdentity{"certificate of " + keys.b, keys.b}},
          .collection_uuid = "things"};
}

TEST(WrongAnswer, IsOfBothKeysAndOfBothAddresses) {
  const TemporaryFolder folder;
  const ServerPair pair = PairOf({"north:1", "south:1"}, {"1a", "2b"});
  EXPECT_THAT(CheckTrusted(folder.path(), pair), IsOk());
  ASSERT_THAT(RecordWrongAnswer(folder.path(), pair, "wrong"), IsOk());
  const ServerPair moved = PairOf({"south:2", "north:2"}, {"2b", "1a"});
  const ServerPair new_keys = PairOf({"south:1", "north:1"}, {"3c", "4d"});
  for (const ServerPair& same : {pair, moved, new_keys}) {
    EXPECT_THAT(CheckTrusted(folder.path(), same),
                FailsWith(absl::StatusCode::kFailedPrecondition, "--trust-again"));
  }
  EXPECT_THAT(CheckTrusted(folder.path(), PairOf({"north:1", "east:1"}, {"1a", "5e"})), IsOk());
  ASSERT_THAT(TrustAgain(folder.path(), pair), IsOk());
  for (const ServerPair& same : {pair, moved, new_keys}) {
    EXPECT_THAT(CheckTrusted(folder.path(), same), IsOk());
  }
}

}  // namespace
}  // namespace privatemail::client
