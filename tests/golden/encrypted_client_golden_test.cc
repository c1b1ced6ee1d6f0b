// The messages and decryptions of a client of encrypted search, from given random bytes, against
// lattice_golden.json: its random bytes, its target, the answer that it decrypts.
#include <algorithm>
#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/encrypted/encrypted_client.h"
#include "client/schemes/encrypted/secret_key.h"
#include "common/lattice/wire.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/v1/encrypted.pb.h"
#include "privatemail/v1/retrieval.pb.h"
#include "tests/golden/golden_streams.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

using namespace lattice;  // NOLINT: streams and sizes
using nlohmann::json;

// Hands out the given bytes, one entry a call. A longer call gets zeros after them.
class GivenBits final : public BitSource {
 public:
  absl::Status Fill(absl::Span<uint8_t> bytes) override {
    if (entries_.empty()) return absl::UnavailableError("no bytes are left");
    EXPECT_LE(entries_.front().size(), bytes.size());
    std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    std::copy(entries_.front().begin(), entries_.front().end(), bytes.begin());
    entries_.pop_front();
    return absl::OkStatus();
  }

  // Two bits for each coefficient, -1 to 1 as 0 to 2.
  void AddSecret(const Polynomial& secret) {
    std::string bytes(kDegree / 4, '\0');
    for (size_t i = 0; i < secret.size(); ++i) {
      bytes[i / 4] = static_cast<char>(bytes[i / 4] | (secret[i] + 1) << (2 * (i % 4)));
    }
    entries_.push_back(bytes);
  }
  void AddSeed(const std::string& name) { entries_.push_back(GoldenBytes(name, kSeedBytes)); }
  // The lowest six bytes of each word, whose 42 lowest bits make an error.
  void AddErrors(const std::string& name) {
    std::string bytes;
    for (const uint64_t word : GoldenWords(name, kDegree)) {
      for (int byte = 0; byte < 6; ++byte) bytes.push_back(static_cast<char>(word >> (8 * byte)));
    }
    entries_.push_back(bytes);
  }
  bool empty() const { return entries_.empty(); }

 private:
  std::deque<std::string> entries_;
};

class EncryptedClientGolden : public ::testing::TestWithParam<int> {
 protected:
  Eigen::RowVectorXf Target() const {
    const Polynomial vector = Stream(absl::StrCat("vector ", name_), dimensions_, 1000);
    Eigen::RowVectorXf target(dimensions_);
    for (int64_t i = 0; i < dimensions_; ++i) target[i] = static_cast<float>(vector[i]);
    return target;
  }

  void AddQuery(GivenBits* bits) const {
    bits->AddSeed(absl::StrCat("seed of query ", name_));
    for (int64_t chunk = 0; chunk < CountChunks(dimensions_, delta_); ++chunk) {
      bits->AddErrors(absl::StrCat("query error ", chunk, " ", name_));
    }
  }

  std::string Answer() const {
    std::string answer(kAnswerBytes, '\0');
    WriteAnswer(RoundedStream("answer a " + name_, kAnswerBitsA).data(),
                RoundedStream("answer b " + name_, kAnswerBitsB).data(), answer.data());
    return answer;
  }

  v1::GetCollectionResponse Collection() const {
    PublicParameters parameters = *MakeParametersWithoutAnchors("uuid", "vectors", Metric::kCosine);
    parameters.feature_dim = dimensions_;
    v1::GetCollectionResponse collection;
    collection.set_name("things");
    ToProto(parameters, collection.mutable_parameters());
    collection.set_fingerprint(Fingerprint(parameters));
    collection.mutable_encrypted()->set_delta(static_cast<uint32_t>(delta_));
    collection.mutable_encrypted()->set_rows(1);
    return collection;
  }

  void AddSession(GivenBits* bits) const {
    bits->AddSecret(Stream(absl::StrCat("secret ", name_), kDegree, 1));
    bits->AddSeed(absl::StrCat("seed of keys ", name_));
    for (int i = 0; i < CountLevels(delta_) * kDigits; ++i) {
      bits->AddErrors(absl::StrCat("key error ", i, " ", name_));
    }
  }

  const json& golden_ = Golden().at("clients").at(GetParam());
  const std::string name_ = golden_.at("name");
  const int delta_ = golden_.at("delta");
  const int64_t dimensions_ = golden_.at("dimensions");
};

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
