// The values of encrypted_client_golden_test.cc through the C interface, in a program of its own:
// the shared library has the same sources a second time.
#include <cmath>
#include <map>

#include "client/c/privatemail_encrypted.h"
#include "tests/golden/client_golden.h"

namespace privatemail::client {
namespace {

INSTANTIATE_TEST_SUITE_P(Clients, EncryptedClientGolden, ::testing::Range(0, 2));

TEST_P(EncryptedClientGolden, KeysQueryAndDecryption) {
  GivenBits bits;
  AddSession(&bits);
  AddQuery(&bits);
  const privatemail_options options = {
      .fill_random = [](void* context, uint8_t* bytes, size_t size) -> int {
        return static_cast<GivenBits*>(context)->Fill(absl::MakeSpan(bytes, size)).ok() ? 0 : 1;
      },
      .context = &bits,
      .max_memory_bytes = 0};
  privatemail_session* session = nullptr;
  privatemail_search* search = nullptr;
  privatemail_call call = {};
  ASSERT_STREQ(privatemail_session_new("things", &options, &session), nullptr);
  const Eigen::RowVectorXf target = Target();
  const privatemail_query query = {.targets = target.data(),
                                   .count = 1,
                                   .dimensions = static_cast<size_t>(dimensions_),
                                   .k = kDegree,
                                   .with_payloads = 0,
                                   .labels = nullptr};
  ASSERT_STREQ(privatemail_search_new(session, &query, &search), nullptr);
  const auto take = [&](const google::protobuf::Message& message) {
    const std::string bytes = message.SerializeAsString();
    ASSERT_STREQ(privatemail_search_take(search, reinterpret_cast<const uint8_t*>(bytes.data()),
                                         bytes.size()),
                 nullptr);
  };
  ASSERT_STREQ(privatemail_search_next(search, 0, &call), nullptr);
  EXPECT_STREQ(call.method, "/privatemail.v1.RetrievalService/GetCollection");
  take(Collection());
  ASSERT_STREQ(privatemail_search_next(search, 0, &call), nullptr);
  EXPECT_TRUE(bits.empty());
  v1::SearchEncryptedRequest request;
  ASSERT_TRUE(request.ParseFromArray(call.request, static_cast<int>(call.request_size)));
  EXPECT_EQ(request.ByteSizeLong(), call.request_size);
  EXPECT_EQ(HexSha256(request.keys()), golden_.at("keys_sha256"));
  EXPECT_EQ(request.keys_digest(), Sha256::Of(request.keys()));
  EXPECT_EQ(HexSha256(request.queries(0).chunks()), golden_.at("query_sha256"));

  v1::RowTableBlock table;
  for (int row = 0; row < kDegree; ++row) {
    table.add_ids(absl::StrCat(row));
    table.add_norms(1);
  }
  v1::SearchEncryptedResponse header, block, scores;
  header.mutable_header()->set_items(kDegree);
  block.mutable_table_block()->set_content(table.SerializeAsString());
  header.mutable_header()->set_table_digests(Sha256::Of(block.table_block().content()));
  scores.mutable_scores()->set_answers(Answer());
  for (const auto* message : {&header, &block, &scores}) take(*message);
  ASSERT_STREQ(privatemail_search_next(search, 0, &call), nullptr);
  EXPECT_EQ(call.method, nullptr);
  std::map<std::string, double> similarity;
  for (size_t rank = 0; rank < kDegree; ++rank) {
    privatemail_match match = {};
    ASSERT_STREQ(privatemail_search_match(search, 0, rank, &match), nullptr);
    similarity[match.id] = match.similarity;
  }
  for (const auto& [row, decrypted] : golden_.at("decrypted").items()) {
    const double cosine = std::round(1.01 * decrypted.get<double>() / (1 << 19) * 1e4) / 1e4;
    EXPECT_NEAR(similarity.at(row), std::clamp(cosine, -1., 1.), 1e-9) << row;
  }
  privatemail_search_free(search);
  privatemail_session_free(session);
}

}  // namespace
}  // namespace privatemail::client
