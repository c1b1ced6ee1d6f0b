#include "server/access/key_ring.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "absl/strings/str_format.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::testing {

using namespace server;  // NOLINT: every test of the server

namespace {

KeyGrant Grant(const std::string& name, Scopes scopes, std::vector<std::string> collections = {}) {
  KeyGrant grant;
  grant.name = name;
  grant.scopes = scopes;
  grant.collections = std::move(collections);
  return grant;
}

class KeyRingTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }

  void Open() {
    ASSERT_OK_AND_ASSIGN(auto ring,
                         KeyRing::Open(KeyFile(folder_ / "keys"), folder_ / "admin.key"));
    ring_ = std::move(ring);
  }

  std::string AdminKey() const {
    std::string text;
    std::ifstream(folder_ / "admin.key") >> text;
    return text;
  }

  const TemporaryFolder folder_;
  std::unique_ptr<KeyRing> ring_;
};

TEST_F(KeyRingTest, FirstStartWritesAdminKey) {
  EXPECT_TRUE(ring_->made_admin_key());
  EXPECT_EQ(ModeOf(folder_ / "admin.key"), 0600u);
  ASSERT_OK_AND_ASSIGN(const auto admin, ring_->Authenticate(AdminKey()));
  EXPECT_TRUE(admin->Has(kAdminScope));
  EXPECT_TRUE(admin->CoversAll());
  const std::string before = AdminKey();
  Open();
  EXPECT_FALSE(ring_->made_admin_key());
  EXPECT_EQ(AdminKey(), before);
}

TEST_F(KeyRingTest, KeyAuthenticatesAfterRestart) {
  ASSERT_OK_AND_ASSIGN(const auto made, ring_->Create(Grant("reader", kSearchScope, {"fruit"})));
  for (int start = 0; start < 2; ++start) {
    ASSERT_OK_AND_ASSIGN(const auto key, ring_->Authenticate(made.text));
    EXPECT_TRUE(key->Has(kSearchScope));
    EXPECT_FALSE(key->Has(kWriteScope | kAdminScope));
    EXPECT_TRUE(key->Covers("fruit"));
    EXPECT_FALSE(key->Covers("fish"));
    EXPECT_FALSE(key->Covers(""));
    EXPECT_FALSE(key->CoversAll());
    Open();
  }
}

TEST_F(KeyRingTest, InvalidKeysGetOneMessage) {
  const auto made = ring_->Create(Grant("reader", kSearchScope));
  const auto revoked = ring_->Create(Grant("former", kSearchScope));
  ASSERT_THAT(ring_->Revoke(revoked->key.id), IsOk());
  std::string wrong = made->text;
  wrong.back() = wrong.back() == 'A' ? 'B' : 'A';
  std::string unknown = made->text;
  unknown[3] = unknown[3] == '0' ? '1' : '0';
  std::set<std::string> messages;
  for (const std::string& text : {wrong, unknown, revoked->text, std::string(), std::string("pm_"),
                                  made->text + "A", made->text.substr(1), made->key.id}) {
    const auto key = ring_->Authenticate(text);
    EXPECT_THAT(key, FailsWith(kUnauthenticated)) << text;
    messages.insert(std::string(key.status().message()));
  }
  EXPECT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages.begin()->find(made->key.id), std::string::npos);
}

TEST_F(KeyRingTest, RevokedKeyStaysRevokedAndListed) {
  const auto made = ring_->Create(Grant("reader", kSearchScope));
  EXPECT_THAT(ring_->Authenticate(made->text), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto revoked, ring_->Revoke(made->key.id));
  EXPECT_THAT(ring_->Authenticate(made->text), FailsWith(kUnauthenticated));
  EXPECT_EQ(ring_->Revoke(made->key.id)->revoked_at, revoked.revoked_at);
  Open();
  EXPECT_THAT(ring_->Authenticate(made->text), FailsWith(kUnauthenticated));
  ASSERT_EQ(ring_->List().size(), 2u);
  EXPECT_THAT(ring_->Revoke("0123456789ab"),
              FailsWith(kNotFound, "key 0123456789ab does not exist"));
  // A key's text, given by mistake, is not repeated.
  const absl::Status text = ring_->Revoke(made->text).status();
  EXPECT_THAT(text, FailsWith(kInvalid, "not a key's text"));
  EXPECT_THAT(std::string(text.message()), ::testing::Not(::testing::HasSubstr("pm_")));
}

TEST_F(KeyRingTest, LastPermanentOperatorKeyCannotBeRevoked) {
  const std::string admin = (*ring_->Authenticate(AdminKey()))->id;
  ASSERT_THAT(ring_->Create(Grant("of fruit", kAdminScope, {"fruit"})), IsOk());
  ASSERT_THAT(ring_->Create(Grant("no admin", kWriteScope | kSearchScope)), IsOk());
  EXPECT_THAT(ring_->Revoke(admin), FailsWith(kFailedPrecondition, "is the last one"));
  KeyGrant grant = Grant("for a day", kAdminScope);
  grant.expires_at = absl::ToUnixSeconds(absl::Now() + absl::Hours(24));
  ASSERT_OK_AND_ASSIGN(const auto guest, ring_->Create(grant));
  EXPECT_THAT(ring_->Revoke(admin), FailsWith(kFailedPrecondition, "that does not expire"));
  EXPECT_THAT(ring_->Revoke(guest.key.id), IsOk());
  ASSERT_THAT(ring_->Create(Grant("second", kAdminScope)), IsOk());
  EXPECT_THAT(ring_->Revoke(admin), IsOk());
}

TEST_F(KeyRingTest, ExpiredKeyReturnsTimeOfExpiry) {
  const absl::Time end = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now())) + absl::Hours(1);
  KeyGrant grant = Grant("guest", kSearchScope);
  grant.expires_at = absl::ToUnixSeconds(end);
  ASSERT_OK_AND_ASSIGN(const auto made, ring_->Create(grant));
  std::string wrong = made.text;
  wrong.back() = wrong.back() == 'A' ? 'B' : 'A';
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(ring_->Authenticate(made.text), IsOk());
    EXPECT_THAT(ring_->Authenticate(made.text, end - absl::Milliseconds(1)), IsOk());
    EXPECT_THAT(ring_->Authenticate(made.text, end),
                FailsWith(kUnauthenticated,
                          "the key expired on " +
                              absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", end, absl::UTCTimeZone())));
    // The id alone does not reveal the expiry.
    EXPECT_THAT(ring_->Authenticate(wrong, end), FailsWith(kUnauthenticated, "unknown, wrong or"));
    Open();
  }
  ASSERT_THAT(ring_->Revoke(made.key.id), IsOk());
  EXPECT_THAT(ring_->Authenticate(made.text, end), FailsWith(kUnauthenticated, "or revoked"));
}

TEST_F(KeyRingTest, ListsLatestEndedKeysOnly) {
  std::vector<AccessKey> keys = ring_->List();
  for (int i = 0; i < 2000; ++i) {
    keys.push_back(CreateAccessKey(Grant(std::to_string(i), kSearchScope), 1000)->key);
    if (i < 1500) {  // ended at second 10,000 + i, in one way or the other
      AccessKey& ended = keys.back();
      (i % 2 == 0 ? ended.revoked_at : ended.grant.expires_at) = 10'000 + i;
    }
  }
  ASSERT_THAT(KeyFile(folder_ / "keys").Save(keys), IsOk());
  ASSERT_THAT(ring_->Reload(), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto made, ring_->Create(Grant("new", kSearchScope)));
  Open();
  std::set<std::string> names;
  for (const AccessKey& key : ring_->List()) names.insert(key.grant.name);
  EXPECT_EQ(names.size(), 1u + 1000 + 500 + 1);
  for (int i = 0; i < 2000; ++i) EXPECT_EQ(names.count(std::to_string(i)), i < 500 ? 0u : 1u) << i;
  EXPECT_THAT(ring_->Authenticate(made.text), IsOk());
  EXPECT_THAT(ring_->Authenticate(AdminKey()), IsOk());
}

TEST_F(KeyRingTest, RevokedKeysDoNotCountAgainstTheLimit) {
  std::vector<AccessKey> keys = ring_->List();
  AccessKey key = CreateAccessKey(Grant("n", kSearchScope), 1000)->key;
  for (int i = 1; i < 10'000; ++i) {
    key.id = absl::StrFormat("%012x", i);
    keys.push_back(key);
  }
  ASSERT_THAT(KeyFile(folder_ / "keys").Save(keys), IsOk());
  ASSERT_THAT(ring_->Reload(), IsOk());
  EXPECT_THAT(ring_->Create(Grant("n", kSearchScope)),
              FailsWith(kExhausted, "there are 10000 valid keys"));
  ASSERT_THAT(ring_->Revoke(key.id), IsOk());
  EXPECT_THAT(ring_->Create(Grant("n", kSearchScope)), IsOk());
}

TEST_F(KeyRingTest, InvalidGrantsAreRefused) {
  const auto refused = [&](const KeyGrant& grant, const char* part) {
    EXPECT_THAT(ring_->Create(grant), FailsWith(kInvalid, part));
  };
  refused(Grant(std::string(65, 'a'), kSearchScope), "name must be");
  refused(Grant("new\nline", kSearchScope), "name must be");
  refused(Grant("n", 0), "scopes must be");
  refused(Grant("n", 8), "scopes must be");
  refused(Grant("n", kSearchScope, {""}), "collections");
  refused(Grant("n", kSearchScope, std::vector<std::string>(1001, "a")),
          "collections must be at most 1000, but are 1001");
  KeyGrant grant = Grant("n", kSearchScope);
  for (const double rate : {-1.0, 1e7, std::nan("")}) {
    grant.requests_per_second = rate;
    refused(grant, "requests_per_second");
  }
  grant = Grant("n", kSearchScope);
  for (const int64_t expires_at : {int64_t{-1}, absl::ToUnixSeconds(absl::Now())}) {
    grant.expires_at = expires_at;
    refused(grant, "expires_at must be 0");
  }
  EXPECT_EQ(ring_->List().size(), 1u);
}

TEST_F(KeyRingTest, UnsavedChangeDoesNotTakeEffect) {
  const auto made = ring_->Create(Grant("reader", kSearchScope));
  // A folder at the path of the temporary file.
  std::filesystem::create_directories(folder_ / "keys.new/full");
  EXPECT_FALSE(ring_->Create(Grant("n", kSearchScope)).ok());
  EXPECT_EQ(ring_->List().size(), 2u);
  EXPECT_THAT(ring_->Authenticate(made->text), IsOk());
}

class UnwrittenRevocation : public KeyRingTest {
 protected:
  void SetUp() override {
    KeyRingTest::SetUp();
    made_ = *ring_->Create(Grant("reader", kSearchScope));
    std::filesystem::create_directories(folder_ / "keys.new/full");  // in the place of the draft
    for (int attempt = 0; attempt < 2; ++attempt) {
      EXPECT_THAT(ring_->Revoke(made_.key.id),
                  FailsWith(kFailedPrecondition,
                            "key " + made_.key.id +
                                " is revoked until the next start or reload, but that is not "
                                "written: cannot create " +
                                (folder_ / "keys.new")));
      EXPECT_THAT(ring_->Authenticate(made_.text), FailsWith(kUnauthenticated, "revoked"));
    }
  }

  void MakeRoom() const { std::filesystem::remove_all(folder_ / "keys.new"); }

  NewAccessKey made_;
};

TEST_F(UnwrittenRevocation, IsWrittenByRetry) {
  MakeRoom();
  EXPECT_THAT(ring_->Revoke(made_.key.id), IsOk());
  EXPECT_THAT(ring_->Reload(), IsOk());
  EXPECT_THAT(ring_->Authenticate(made_.text), FailsWith(kUnauthenticated, "revoked"));
}

TEST_F(UnwrittenRevocation, IsWrittenWithTheNextChange) {
  MakeRoom();
  ASSERT_THAT(ring_->Create(Grant("n", kSearchScope)), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto valid_again, ring_->Reload());
  EXPECT_TRUE(valid_again.empty());
  EXPECT_THAT(ring_->Authenticate(made_.text), FailsWith(kUnauthenticated, "revoked"));
}

TEST_F(UnwrittenRevocation, ReloadEndsAndReportsIt) {
  ASSERT_OK_AND_ASSIGN(const auto valid_again, ring_->Reload());
  EXPECT_EQ(valid_again, std::vector<std::string>{made_.key.id});
  EXPECT_THAT(ring_->Authenticate(made_.text), IsOk());
  EXPECT_TRUE(ring_->Reload()->empty());
}

TEST_F(KeyRingTest, DamagedFileStopsStartNotReload) {
  folder_.Write("keys", "privatemail keys 1\n");
  EXPECT_THAT(ring_->Reload(), FailsWith(kDataLoss, folder_ / "keys"));
  EXPECT_THAT(ring_->Authenticate(AdminKey()), IsOk());
  EXPECT_THAT(KeyRing::Open(KeyFile(folder_ / "keys"), folder_ / "admin.key"),
              FailsWith(kDataLoss, folder_ / "keys"));
}

TEST_F(KeyRingTest, AuthenticatesDuringChanges) {
  const std::string admin = AdminKey();
  std::thread operators([&] {
    for (int i = 0; i < 20; ++i) {
      const auto made = ring_->Create(Grant("n", kSearchScope));
      ASSERT_THAT(ring_->Revoke(made->key.id), IsOk());
      ASSERT_THAT(ring_->Reload(), IsOk());
    }
  });
  for (int i = 0; i < 2000; ++i) EXPECT_THAT(ring_->Authenticate(admin), IsOk());
  operators.join();
  EXPECT_EQ(ring_->List().size(), 21u);
}

TEST(AccessKey, TextsHaveDocumentedFormat) {
  std::set<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.insert(CreateAccessKey(Grant("n", kSearchScope), 1)->text);
  EXPECT_EQ(texts.size(), 100u);
  for (const std::string& text : texts) {
    EXPECT_THAT(text, ::testing::MatchesRegex("pm_[0-9a-f]+_[A-Za-z0-9_-]+"));
    EXPECT_EQ(text.size(), 3u + 12 + 1 + 43);
  }
}

}  // namespace
}  // namespace privatemail::testing
