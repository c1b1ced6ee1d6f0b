// Encrypted searches over the network: requests that break the contract, limits and logs.
#include <chrono>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "common/base/digests.h"
#include "common/lattice/evaluator.h"
#include "common/rpc/status.h"
#include "privatemail/v1/encrypted.grpc.pb.h"
#include "server/engine/score_pass.h"
#include "tests/testing/random_polynomials.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/services/access_fixture.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

constexpr int kDimensions = 40;
constexpr uint32_t kDelta = 32;  // two chunks
constexpr size_t kChunkBytes = 10'496;

std::string SessionKeys(uint64_t seed, int delta = kDelta) {
  const auto count = static_cast<size_t>(lattice::CountLevels(delta) * lattice::kDigits);
  return std::string(lattice::kSeedBytes, static_cast<char>(seed)) + RandomPolynomials(count, seed);
}

void AddQuery(v1::SearchEncryptedRequest* request) {
  v1::EncryptedQuery* query = request->add_queries();
  query->set_seed(std::string(lattice::kSeedBytes, 'q'));
  query->set_chunks(RandomPolynomials(2, 9));
}

v1::SearchEncryptedRequest SearchRequest(const std::string& fingerprint) {
  static const std::string keys = SessionKeys(1);
  v1::SearchEncryptedRequest request;
  request.set_collection("notes");
  request.set_fingerprint(fingerprint);
  request.set_delta(kDelta);
  request.set_keys(keys);
  request.set_keys_digest(Sha256::Of(keys));
  AddQuery(&request);
  return request;
}

struct SearchResult {
  absl::Status status;
  std::vector<v1::SearchEncryptedResponse> messages;
};

SearchResult SearchAt(const std::shared_ptr<grpc::Channel>& channel,
                      const v1::SearchEncryptedRequest& request,
                      absl::Duration deadline = absl::InfiniteDuration()) {
  grpc::ClientContext context;
  if (deadline < absl::InfiniteDuration()) {
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(deadline));
  }
  const auto reader = v1::EncryptedService::NewStub(channel)->SearchEncrypted(&context, request);
  SearchResult result;
  v1::SearchEncryptedResponse message;
  while (reader->Read(&message)) result.messages.push_back(message);
  result.status = FromGrpc(reader->Finish());
  return result;
}

class EncryptedSearch : public ServiceTest {
 protected:
  void Put(int first, int count, const std::string& payload = "") {
    v1::UpsertItemsRequest message;
    message.set_collection("notes");
    for (int i = first; i < first + count; ++i) {
      v1::Item& item = *message.add_items();
      item.set_id(absl::StrCat("item ", i));
      item.set_unlabelled(true);
      item.set_payload(payload);
      for (int c = 0; c < kDimensions; ++c) item.add_features(static_cast<float>(i + c + 1));
    }
    v1::UpsertItemsResponse totals;
    ASSERT_THAT(Upsert({message}, &totals), IsOk());
    ASSERT_EQ(totals.inserted(), static_cast<uint64_t>(count));
  }

  void MakeNotes(int items) {
    ASSERT_THAT(Create(Notes()), IsOk());
    Put(0, items);
  }

  v1::SearchEncryptedRequest Good() const { return SearchRequest(Get("notes").fingerprint()); }

  SearchResult Search(const v1::SearchEncryptedRequest& request,
                      absl::Duration deadline = absl::InfiniteDuration()) const {
    return SearchAt(Connect(daemon_->address(), grpc::InsecureChannelCredentials()), request,
                    deadline);
  }
};

TEST_F(EncryptedSearch, HostileRequestsNameTheField) {
  MakeNotes(3);
  const v1::SearchEncryptedRequest good = Good();
  ASSERT_THAT(Search(good).status, IsOk());  // its keys are cached
  const auto set_keys = [](v1::SearchEncryptedRequest* r, const std::string& keys) {
    r->set_keys(keys);
    r->set_keys_digest(Sha256::Of(keys));
  };
  const std::string other_level = SessionKeys(3, 64);
  const std::pair<std::string, std::function<void(v1::SearchEncryptedRequest*)>> faults[] = {
      {"delta must be one of 32, 64, 128, 256, but is 48", [](auto* r) { r->set_delta(48); }},
      {"keys_digest must have 32 bytes, but has 31",
       [](auto* r) { r->mutable_keys_digest()->pop_back(); }},
      {"keys_digest must be the SHA-256 of keys, but is not",
       [](auto* r) { r->set_keys_digest(std::string(32, 'x')); }},
      {"keys_digest must be the SHA-256 of keys, but is not",
       [](auto* r) { r->set_keys(SessionKeys(2)); }},  // the digest of keys that are cached
      {absl::StrCat("keys must have ", lattice::KeysBytes(32), " bytes, but has ",
                    other_level.size()),
       [&](auto* r) { set_keys(r, other_level); }},
      {"keys must hold numbers less than 2199023251457",
       [&](auto* r) {
         set_keys(r, SessionKeys(2).substr(0, 32 + kChunkBytes) +
                         std::string(lattice::KeysBytes(32) - 32 - kChunkBytes, '\xff'));
       }},
      {"queries must hold at least one", [](auto* r) { r->clear_queries(); }},
      {"queries[0].seed must have 32 bytes, but has 0",
       [](auto* r) { r->mutable_queries(0)->clear_seed(); }},
      {"queries[0].chunks must have 20992 bytes, but has 20991",
       [](auto* r) { r->mutable_queries(0)->mutable_chunks()->pop_back(); }},
      {"queries[1].chunks must hold numbers less than",
       [](auto* r) {
         AddQuery(r);
         r->mutable_queries(1)->mutable_chunks()->replace(2 * kChunkBytes - 6, 6, 6, '\xff');
       }},
      {"queries must hold at most 4096, but hold 4097",
       [](auto* r) {
         for (int i = 0; i < 4096; ++i) r->add_queries();
       }},
      {"known_blocks must hold at most 1048576, but hold 1048577",
       [](auto* r) { r->mutable_known_blocks()->Resize((1 << 20) + 1, 7); }},
      {"known_payload_blocks must hold at most 1048576, but hold 1048577",
       [](auto* r) {
         r->set_with_payloads(true);
         r->mutable_known_payload_blocks()->Resize((1 << 20) + 1, 7);
       }},
      {"known_payload_blocks must not be given unless with_payloads is set",
       [](auto* r) { r->add_known_payload_blocks(7); }},
  };
  for (const auto& [message, spoil] : faults) {
    v1::SearchEncryptedRequest request = good;
    spoil(&request);
    const SearchResult result = Search(request);
    EXPECT_THAT(result.status, FailsWith(kInvalid, message));
    EXPECT_TRUE(result.messages.empty()) << message;
  }
  // Cached keys of one delta with a query of another one.
  v1::SearchEncryptedRequest request = good;
  request.clear_keys();
  request.set_delta(64);
  request.mutable_queries(0)->set_chunks(RandomPolynomials(1, 9));
  EXPECT_THAT(Search(request).status,
              FailsWith(kInvalid, "delta must be that of the keys, 32, but is 64"));
  request = good;
  request.set_fingerprint(std::string(32, 'x'));
  EXPECT_EQ(Search(request).status.code(), kFailedPrecondition);
  EXPECT_THAT(Search(good).status, IsOk());
}

TEST_F(EncryptedSearch, UnknownDigestsOfBlocksAreIgnored) {
  MakeNotes(3);
  v1::SearchEncryptedRequest request = Good();
  const std::string digest = Search(request).messages[0].header().table_digests();
  request.mutable_known_blocks()->Resize(1 << 20, 7);
  EXPECT_EQ(Search(request).messages.size(), 3u);
  uint64_t prefix = 0;
  std::memcpy(&prefix, digest.data(), sizeof(prefix));
  request.mutable_known_blocks()->Set(1, prefix);
  EXPECT_EQ(Search(request).messages.size(), 2u) << "a block that the searcher holds was sent";
}

TEST_F(EncryptedSearch, CollectionWithoutItemsIsAFailedPrecondition) {
  constexpr char kMessage[] = "collection notes has no items yet";
  ASSERT_THAT(Create(Notes()), IsOk());
  EXPECT_THAT(Search(Good()).status, FailsWith(kFailedPrecondition, kMessage));
  Put(0, 3);
  ASSERT_THAT(Search(Good()).status, IsOk());
  ASSERT_THAT(DeleteItems("notes", {"item 0", "item 1", "item 2"}), IsOk());
  const SearchResult result = Search(Good());
  EXPECT_THAT(result.status, FailsWith(kFailedPrecondition, kMessage));
  EXPECT_TRUE(result.messages.empty());
}

TEST_F(EncryptedSearch, AuditLogAndMetricsCountRowsKeysAndQueries) {
  DaemonOptions options;
  options.http = "127.0.0.1:0";
  Serve(options);
  MakeNotes(3);
  v1::SearchEncryptedRequest request = Good();
  AddQuery(&request);
  ASSERT_THAT(Search(request).status, IsOk());
  request.clear_keys();
  ASSERT_THAT(Search(request).status, IsOk());
  EXPECT_EQ(Metric("privatemail_encrypted_rows{collection=\"notes\"}"), 3);
  EXPECT_GE(Metric("privatemail_encrypted_rows_bytes{collection=\"notes\"}"),
            2 * 2048 * kDimensions);
  EXPECT_EQ(Metric("privatemail_encrypted_passes_total{collection=\"notes\"}"), 2);
  EXPECT_EQ(Metric("privatemail_encrypted_queries_total{collection=\"notes\"}"), 4);
  EXPECT_EQ(Metric("privatemail_evaluation_key_lookups_total{result=\"miss\"}"), 1);
  EXPECT_EQ(Metric("privatemail_evaluation_key_lookups_total{result=\"hit\"}"), 1);
  EXPECT_EQ(Metric("privatemail_evaluation_keys_bytes"),
            static_cast<double>(lattice::EvaluationKeys::Memory(32)));
  ASSERT_TRUE(WaitUntil([&] { return Audited("SearchEncrypted").size() == 2; }));
  EXPECT_EQ(Audited("SearchEncrypted")[0]["rows"], 3 * 2);
  EXPECT_EQ(Audited("SearchEncrypted")[0]["collection"], "notes");
}

TEST_F(EncryptedSearch, DeadlineInTheMiddleEndsTheCall) {
  MakeNotes(3);
  v1::SearchEncryptedRequest request = Good();
  const v1::EncryptedQuery query = request.queries(0);
  while (request.queries_size() < 2000) *request.add_queries() = query;
  // On a busy machine the request may not arrive in time.
  ASSERT_TRUE(WaitUntil([&] {
    EXPECT_EQ(Search(request, absl::Milliseconds(500)).status.code(),
              absl::StatusCode::kDeadlineExceeded);
    return !Audited("SearchEncrypted").empty();
  }));
  EXPECT_NE(Audited("SearchEncrypted")[0]["code"], "OK");
  EXPECT_THAT(Search(Good()).status, IsOk());
}

constexpr int64_t kNoMemoryForKeys = 300'000;  // of one session's keys: 329 KB

TEST_F(EncryptedSearch, KeysAnswerTheirSearchWithoutTheCache) {
  DaemonOptions options;
  options.limits.max_resident_memory = kNoMemoryForKeys;
  Serve(options);
  MakeNotes(3);
  v1::SearchEncryptedRequest request = Good();
  EXPECT_EQ(Search(request).messages.size(), 3u);
  request.clear_keys();
  const SearchResult result = Search(request);
  ASSERT_EQ(result.messages.size(), 1u);
  EXPECT_TRUE(result.messages[0].header().keys_missing());
}

// Enough for a search of one query, but not for the keys of a session, too.
TEST_F(EncryptedSearch, OnlyUncachedKeysCountForTheSearch) {
  DaemonOptions options;
  options.limits.max_search_memory = ScorePass::MemoryFor(1, 1, kDimensions, kDelta) + 100'000;
  Serve(options);
  MakeNotes(3);
  EXPECT_THAT(Search(Good()).status, IsOk());
  options.limits.max_resident_memory = kNoMemoryForKeys;
  Serve(options);
  EXPECT_TRUE(WaitUntil([&] { return !absl::IsUnavailable(Search(Good()).status); })) << "rows";
  EXPECT_THAT(Search(Good()).status, FailsWith(kExhausted, "(memory / 8)"));
}

TEST_F(EncryptedSearch, BlockBeyondAMessageOrItsMemoryNamesTheLimit) {
  DaemonOptions options;
  options.limits.max_message_bytes = 2 << 20;
  options.limits.max_request_memory = 10 << 20;
  Serve(options);
  ASSERT_THAT(Create(Notes()), IsOk());
  const std::string payload = absl::StrCat("\"", std::string(50'000, 'x'), "\"");
  Put(0, 30, payload);
  v1::SearchEncryptedRequest request = Good();
  request.set_with_payloads(true);
  const SearchResult fits = Search(request);
  ASSERT_THAT(fits.status, IsOk());
  EXPECT_GT(fits.messages[2].payload_block().content().size(), 1'500'000u);
  Put(30, 24, payload);
  Put(54, 24, payload);
  // A block of 3.9 MB is in memory three times while it is sent.
  EXPECT_THAT(Search(request).status, FailsWith(kExhausted, "(memory / 16)"));
  Put(78, 12, payload);
  const SearchResult result = Search(request);
  EXPECT_THAT(result.status, FailsWith(kExhausted, "bytes, but a message has at most 4194304: "));
  EXPECT_TRUE(result.messages.empty());
  EXPECT_THAT(Search(Good()).status, IsOk());
}

TEST_F(AccessTest, RateCountsEncryptedQueriesThatAreAnswered) {
  const auto stub = v1::CollectionsService::NewStub(ChannelWith(admin_));
  ASSERT_THAT(
      Ask(stub.get(), &ServiceTest::Collections::CreateCollection, ServiceTest::Notes()).status(),
      IsOk());
  Put("notes", MakeItems(3, 1));
  const auto retrieval = v1::RetrievalService::NewStub(ChannelWith(admin_));
  v1::GetCollectionRequest notes;
  notes.set_collection("notes");
  ASSERT_OK_AND_ASSIGN(const v1::GetCollectionResponse found,
                       Ask(retrieval.get(), &ServiceTest::Retrieval::GetCollection, notes));
  v1::SearchEncryptedRequest request = SearchRequest(found.fingerprint());
  const size_t chunks = (MakeItems(1, 1)[0].features.size() + kDelta - 1) / kDelta;
  request.clear_queries();
  for (int i = 0; i < 5; ++i) {
    AddQuery(&request);
    request.mutable_queries(i)->set_chunks(RandomPolynomials(chunks, 9));
  }
  const std::string key = MakeKey(kSearchScope, {"notes"}, 0.001).text();
  EXPECT_THAT(SearchAt(ChannelWith(key), request).status, IsOk());
  EXPECT_THAT(
      SearchAt(ChannelWith(key), request).status,
      FailsWith(kExhausted, "may make 0.001 calls a second (1 at once): try again in 5000 s"));
  request.set_fingerprint(std::string(32, 'x'));
  const std::string wrong = MakeKey(kSearchScope, {"notes"}, 0.001).text();
  SearchAt(ChannelWith(wrong), request);
  EXPECT_THAT(SearchAt(ChannelWith(wrong), request).status,
              FailsWith(kExhausted, "try again in 1000 s"));
}

}  // namespace
}  // namespace privatemail::testing
