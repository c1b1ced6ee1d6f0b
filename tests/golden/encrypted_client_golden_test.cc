// The messages and decryptions of a client of encrypted search, from given random bytes, against
// lattice_golden.json.
#include "client/schemes/encrypted/encrypted_client.h"
#include "client/schemes/encrypted/secret_key.h"
#include "tests/golden/client_golden.h"

namespace privatemail::client {
namespace {

INSTANTIATE_TEST_SUITE_P(Clients, EncryptedClientGolden, ::testing::Range(0, 2));

TEST_P(EncryptedClientGolden, KeysAndQuery) {
  ASSERT_EQ(Golden().at("clients").size(), 2u);
  GivenBits bits;
  AddSession(&bits);
  ASSERT_OK_AND_ASSIGN(const auto session, EncryptedSession::Create(delta_, bits));
  EXPECT_TRUE(bits.empty());
  EXPECT_EQ(HexSha256(session->keys()), golden_.at("keys_sha256"));

  ASSERT_OK_AND_ASSIGN(const EncryptedClient client, EncryptedClient::Create(Collection()));
  AddQuery(&bits);
  ASSERT_OK_AND_ASSIGN(const PreparedEncryptedQuery query, client.Prepare(Target(), session, bits));
  EXPECT_TRUE(bits.empty());
  EXPECT_EQ(query.request.seed, GoldenBytes(absl::StrCat("seed of query ", name_), kSeedBytes));
  EXPECT_EQ(HexSha256(query.request.chunks), golden_.at("query_sha256"));
}

TEST_P(EncryptedClientGolden, Decryption) {
  GivenBits bits;
  AddSession(&bits);
  ASSERT_OK_AND_ASSIGN(const SecretKey secret, SecretKey::Generate(bits));
  const std::string answer = Answer();
  ASSERT_OK_AND_ASSIGN(const auto decrypted, secret.Decrypt(answer));
  ASSERT_EQ(decrypted.size(), size_t{kDegree});
  ExpectValues(decrypted, golden_.at("decrypted"));
  std::string bytes;
  for (const int32_t value : decrypted) {
    for (int byte = 0; byte < 4; ++byte) bytes.push_back(static_cast<char>(value >> (8 * byte)));
  }
  EXPECT_EQ(HexSha256(bytes), golden_.at("decrypted_sha256"));
}

}  // namespace
}  // namespace privatemail::client
