#include <openssl/sha.h>

#include <random>

#include "absl/strings/escaping.h"
#include "server/access/key_ring.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::testing {

using namespace server;  // NOLINT: every test of the server

namespace {

std::vector<AccessKey> SomeKeys() {
  std::vector<AccessKey> keys;
  for (int i = 0; i < 5; ++i) {
    KeyGrant grant;
    grant.name = "number " + std::to_string(i);
    grant.scopes = static_cast<Scopes>(1 + i);
    if (i > 0) grant.collections = {"fruit", "fish \"quoted\""};
    grant.requests_per_second = i / 3.0;
    keys.push_back(CreateAccessKey(grant, 1000 + i)->key);
    keys.back().revoked_at = i == 2 ? 2000 : 0;
    keys.back().grant.expires_at = i == 3 ? 3000 : 0;
  }
  return keys;
}

class KeyFileTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const KeyFile file_{folder_ / "keys"};
};

TEST_F(KeyFileTest, LoadsWhatWasSavedWithMode0600AndNoSecret) {
  EXPECT_FALSE(file_.Exists());
  const std::vector<AccessKey> keys = SomeKeys();
  ASSERT_THAT(file_.Save(keys), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto loaded, file_.Load());
  ASSERT_EQ(loaded.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(loaded[i].id, keys[i].id);
    EXPECT_EQ(loaded[i].salt, keys[i].salt);
    EXPECT_EQ(loaded[i].digest, keys[i].digest);
    EXPECT_EQ(loaded[i].created_at, keys[i].created_at);
    EXPECT_EQ(loaded[i].revoked_at, keys[i].revoked_at);
    EXPECT_EQ(loaded[i].grant.expires_at, keys[i].grant.expires_at);
    EXPECT_EQ(loaded[i].grant.name, keys[i].grant.name);
    EXPECT_EQ(loaded[i].grant.scopes, keys[i].grant.scopes);
    EXPECT_EQ(loaded[i].grant.collections, keys[i].grant.collections);
    EXPECT_EQ(loaded[i].grant.requests_per_second, keys[i].grant.requests_per_second);
  }
  EXPECT_EQ(ModeOf(file_.path()), 0600u);
  const auto made = CreateAccessKey(keys[0].grant, 1);
  ASSERT_THAT(file_.Save({made->key}), IsOk());
  EXPECT_THAT(Contents(file_.path()),
              ::testing::Not(::testing::HasSubstr(std::string(ParseKeyText(made->text).secret))));
}

TEST_F(KeyFileTest, FlippedBitOrTruncationReturnsDataLoss) {
  ASSERT_THAT(file_.Save(SomeKeys()), IsOk());
  const std::string good = Contents(file_.path());
  std::mt19937 bits(1);
  for (int i = 0; i < 1200; ++i) {
    std::string damaged = good;
    if (i < 1000) {
      damaged[bits() % damaged.size()] ^= static_cast<char>(1 << bits() % 8);
    } else {
      damaged.resize(bits() % damaged.size());
    }
    folder_.Write("keys", damaged);
    ASSERT_THAT(file_.Load(), FailsWith(kDataLoss, "key file " + file_.path() + " is damaged ("))
        << i;
  }
  folder_.Write("keys", good + "x");
  EXPECT_THAT(file_.Load(), FailsWith(kDataLoss, "checksum"));
}

TEST_F(KeyFileTest, NewerVersionIsRefused) {
  const std::string body = "privatemail keys 2\n";
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(body.data()), body.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  folder_.Write("keys", body + "sha256 " + absl::BytesToHexString(digest) + "\n");
  EXPECT_THAT(file_.Load(),
              FailsWith(kFailedPrecondition, "is of a version that this program does not know"));
}

}  // namespace
}  // namespace privatemail::testing
