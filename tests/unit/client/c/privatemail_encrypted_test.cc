// The C interface against a server in the test's process. The scheme itself has tests of its own.
#include "client/c/privatemail_encrypted.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/testing/encrypted_things.h"
#include "tests/testing/matchers.h"

namespace privatemail::client::c_test {
namespace {

using Answer = std::vector<v1::SearchEncryptedResponse>;

constexpr int kDim = 16;

struct Sent {
  std::string method, bytes;

  v1::SearchEncryptedRequest Request() const {
    v1::SearchEncryptedRequest request;
    EXPECT_TRUE(request.ParseFromString(bytes));
    return request;
  }
};

class CInterface : public ::testing::Test {
 protected:
  CInterface() { NewSession(); }
  ~CInterface() override { privatemail_session_free(session_); }

  void NewSession() {
    privatemail_session_free(session_);
    ASSERT_STREQ(privatemail_session_new("things", nullptr, &session_), nullptr);
  }

  template <typename Message>
  std::string Take(privatemail_search* search, const Message& message) {
    const std::string bytes = message.SerializeAsString();
    const char* error = privatemail_search_take(
        search, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    return error == nullptr ? "" : error;
  }

  // Sends what the search asks for until it is answered, and returns the first error.
  std::string Run(privatemail_search* search) {
    for (;;) {
      privatemail_call call = {};
      const char* error = privatemail_search_next(search, repeat_ ? 1 : 0, &call);
      if (error != nullptr) return error;
      repeat_ = false;
      if (call.method == nullptr) return "";
      sent_.push_back(
          {call.method, {reinterpret_cast<const char*>(call.request), call.request_size}});
      if (!sent_.back().method.ends_with("SearchEncrypted")) {
        if (std::string refused = Take(search, collection_); !refused.empty()) return refused;
        if (described_) described_();
        continue;
      }
      Answer answer = things_.Answer(sent_.back().Request());
      change_(&answer);
      for (const auto& message : answer) {
        if (std::string refused = Take(search, message); !refused.empty()) return refused;
      }
    }
  }

  // Finds the ids of each target, nearest first, or returns an error.
  std::string Search(const FloatMatrix& targets, int64_t k = 3, bool with_payloads = false) {
    const privatemail_query query = {.targets = targets.data(),
                                     .count = static_cast<size_t>(targets.rows()),
                                     .dimensions = static_cast<size_t>(targets.cols()),
                                     .k = k,
                                     .with_payloads = with_payloads ? 1 : 0,
                                     .labels = nullptr};
    privatemail_search* search = nullptr;
    sent_.clear();
    const char* error = privatemail_search_new(session_, &query, &search);
    if (error != nullptr) return error;
    std::string found = Run(search);
    for (size_t target = 0; found.empty() && target < query.count; ++target) {
      ids_.assign(query.count, {});
      for (size_t rank = 0;; ++rank) {
        error = privatemail_search_match(search, target, rank, &match_);
        if (error != nullptr) found = error;
        if (error != nullptr || match_.id == nullptr) break;
        if (rank == 0) nearest_.push_back(match_.id);
        if (rank == 0) payload_ = match_.payload;
        ids_[target].push_back(match_.id);
      }
    }
    privatemail_search_free(search);
    return found;
  }

  const FloatMatrix rows_ = NormalRows(2100, kDim, 1);
  EncryptedThings things_{rows_};
  v1::GetCollectionResponse collection_ = [this] {
    v1::GetCollectionResponse collection = things_.Collection();
    collection.set_name("things");
    return collection;
  }();
  std::function<void(Answer*)> change_ = [](Answer*) {};
  std::function<void()> described_;
  bool repeat_ = false;
  std::vector<Sent> sent_;
  std::vector<std::string> nearest_;  // of all targets so far
  std::vector<std::vector<std::string>> ids_;
  std::string payload_;
  privatemail_match match_ = {};
  privatemail_session* session_ = nullptr;
};

TEST_F(CInterface, FindsTheNearestItemsOfEachTarget) {
  ASSERT_EQ(Search(rows_.topRows(3), 5, /*with_payloads=*/true), "");
  EXPECT_EQ(nearest_, (std::vector<std::string>{"item 0", "item 1", "item 2"}));
  EXPECT_EQ(ids_[2].size(), 5U);
  EXPECT_EQ(payload_, "{\"i\":2}");
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0].method, "/privatemail.v1.RetrievalService/GetCollection");
  EXPECT_EQ(sent_[1].Request().queries_size(), 3);
  privatemail_collection described = {};
  ASSERT_STREQ(privatemail_session_describe(session_, &described), nullptr);
  EXPECT_EQ(described.dimensions, uint32_t{kDim});
  EXPECT_EQ(described.items, 2100U);
  EXPECT_EQ(described.items_version, 7U);
  std::string digests;
  for (int block = 0; block < 2; ++block) digests += Sha256::Of(things_.TableBlock(block));
  for (int block = 0; block < 2; ++block) digests += Sha256::Of(things_.PayloadBlock(block));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(described.root_digest), 32),
            Sha256::Of(digests));
}

TEST_F(CInterface, KeysAndTableAreSentOnceInASession) {
  ASSERT_EQ(Search(rows_.topRows(1)), "");
  EXPECT_EQ(sent_[1].Request().keys().size(), lattice::KeysBytes(32));
  EXPECT_EQ(sent_[1].Request().known_blocks_size(), 0);
  ASSERT_EQ(Search(rows_.topRows(1)), "");
  EXPECT_EQ(sent_[1].Request().keys().size(), 0U);
  EXPECT_EQ(sent_[1].Request().known_blocks_size(), 2);
}

TEST_F(CInterface, MissingKeysAreSentWithTheSameQueriesAtMostThreeTimes) {
  ASSERT_EQ(Search(rows_.topRows(1)), "");
  things_.forgets_keys = true;
  ASSERT_EQ(Search(rows_.topRows(1)), "");
  ASSERT_EQ(sent_.size(), 3U);
  EXPECT_EQ(sent_[1].Request().keys(), "");
  EXPECT_NE(sent_[2].Request().keys(), "");
  EXPECT_EQ(sent_[1].Request().queries(0).SerializeAsString(),
            sent_[2].Request().queries(0).SerializeAsString());
  change_ = [](Answer* answer) {
    *answer = Answer(1);
    answer->front().mutable_header()->set_keys_missing(true);
  };
  EXPECT_THAT(Search(rows_.topRows(1)), testing::StartsWith("UNAVAILABLE: the server must keep"));
  EXPECT_EQ(sent_.size(), 4U);
}

TEST_F(CInterface, RepeatedCallHasTheSameBytes) {
  change_ = [&](Answer* answer) {
    if (sent_.size() > 2) return;
    answer->pop_back();
    repeat_ = true;
  };
  ASSERT_EQ(Search(rows_.middleRows(7, 1)), "");
  ASSERT_EQ(sent_.size(), 3U);
  EXPECT_EQ(sent_[1].bytes, sent_[2].bytes);
  EXPECT_EQ(nearest_, std::vector<std::string>{"item 7"});
}

TEST_F(CInterface, NumberOrderAndSizesOfCallsDoNotDependOnTargetsOrScores) {
  ASSERT_EQ(Search(rows_.topRows(1)), "");
  std::set<std::vector<std::pair<std::string, size_t>>> traces;
  for (int i = 0; i < 60; ++i) {
    change_ = [&](Answer* answer) {
      std::string* scores = answer->back().mutable_scores()->mutable_answers();
      if (i % 3 == 1) std::fill(scores->begin(), scores->end(), '\0');
      if (i % 3 == 2) std::reverse(scores->begin(), scores->end());
    };
    ASSERT_EQ(
        Search(i % 2 == 0 ? FloatMatrix(rows_.middleRows(i, 1)) : NormalRows(1, kDim, 500 + i)),
        "");
    std::vector<std::pair<std::string, size_t>> trace;
    for (const Sent& call : sent_) trace.emplace_back(call.method, call.bytes.size());
    traces.insert(trace);
  }
  EXPECT_EQ(traces.size(), 1U);
}

TEST_F(CInterface, KeptBlocksSaveTheNextSessionTheTable) {
  ASSERT_EQ(Search(rows_.topRows(1)), "");
  std::vector<std::string> kept;
  privatemail_block block = {};
  for (size_t i = 0;; ++i) {
    ASSERT_STREQ(privatemail_session_get_block(session_, 0, i, &block), nullptr);
    if (block.content == nullptr) break;
    kept.emplace_back(reinterpret_cast<const char*>(block.content), block.size);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(block.digest), 32),
              Sha256::Of(kept.back()));
  }
  ASSERT_EQ(kept.size(), 2U);
  NewSession();
  EXPECT_THAT(privatemail_session_add_block(session_, 0, nullptr, 0),
              testing::StartsWith("FAILED_PRECONDITION"));
  described_ = [&] {
    for (std::string& content : kept) {
      EXPECT_STREQ(
          privatemail_session_add_block(
              session_, 0, reinterpret_cast<const uint8_t*>(content.data()), content.size()),
          nullptr);
      content[4] ^= 1;  // as a damaged block, which is never used
      EXPECT_STREQ(
          privatemail_session_add_block(
              session_, 0, reinterpret_cast<const uint8_t*>(content.data()), content.size()),
          nullptr);
    }
  };
  size_t answered = 0;
  change_ = [&](Answer* answer) { answered = answer->size(); };
  ASSERT_EQ(Search(rows_.middleRows(9, 1)), "");
  EXPECT_EQ(answered, 2U);  // header and scores
  EXPECT_EQ(nearest_.back(), "item 9");

  // Another collection of this name shows the server nothing of what is held of the first.
  described_ = nullptr;
  collection_.mutable_parameters()->set_collection_uuid("another");
  ASSERT_EQ(Search(rows_.topRows(1)), "");
  EXPECT_EQ(sent_[1].Request().known_blocks_size(), 0);
}

TEST_F(CInterface, WhatTheServerNamesIsCheckedBeforeAnyQuery) {
  const v1::GetCollectionResponse honest = collection_;
  const auto refused = [&](auto change) {
    collection_ = honest;
    change(&collection_);
    const std::string error = Search(rows_.topRows(1));
    EXPECT_EQ(sent_.size(), 1U);
    return error;
  };
  using testing::StartsWith;
  EXPECT_THAT(
      refused([](auto* c) { c->mutable_encrypted()->set_delta(33); }),
      StartsWith("FAILED_PRECONDITION: delta of collection things must be 32, 64, 128 or 256"));
  EXPECT_THAT(refused([](auto* c) { c->set_name("other"); }), StartsWith("DATA_LOSS: collection"));
  EXPECT_THAT(refused([](auto* c) { c->mutable_parameters()->clear_metric(); }),
              StartsWith("DATA_LOSS: public parameters"));
  EXPECT_THAT(refused([](auto* c) { c->mutable_parameters()->set_feature_dim(kDim + 1); }),
              StartsWith("INVALID_ARGUMENT: targets must be rows of 17 columns"));
  EXPECT_THAT(refused([](auto* c) { c->mutable_encrypted()->set_rows(uint64_t{1} << 60); }),
              StartsWith("RESOURCE_EXHAUSTED: max_memory"));
  EXPECT_THAT(refused([](auto* c) { c->clear_fingerprint(); }),
              StartsWith("DATA_LOSS: fingerprint"));
  collection_ = honest;
  EXPECT_THAT(Search(FloatMatrix::Constant(1, kDim, NAN)), StartsWith("INVALID_ARGUMENT: targets"));
  EXPECT_TRUE(sent_.empty());
  EXPECT_THAT(Search(rows_.topRows(1), 0), StartsWith("INVALID_ARGUMENT: k must be between 1 and"));
  EXPECT_EQ(sent_.size(), 1U);
}

TEST_F(CInterface, MalformedAnswerIsRefusedAndForgotten) {
  change_ = [](Answer* a) { (*a)[1].mutable_table_block()->set_content("x"); };
  EXPECT_THAT(Search(rows_.topRows(1)),
              testing::HasSubstr("DATA_LOSS: block 0 of the row table does not have the digest"));
  change_ = [](Answer*) {};
  ASSERT_EQ(Search(rows_.topRows(1)), "");
  EXPECT_EQ(sent_[1].Request().known_blocks_size(), 0);
}

TEST_F(CInterface, WithoutRandomBitsNothingIsSent) {
  const privatemail_options options = {
      .fill_random = [](void*, uint8_t*, size_t) -> int { return 1; },
      .context = nullptr,
      .max_memory_bytes = 0};
  privatemail_session_free(session_);
  ASSERT_STREQ(privatemail_session_new("things", &options, &session_), nullptr);
  EXPECT_EQ(Search(rows_.topRows(1)), "UNAVAILABLE: fill_random has no random bits");
  EXPECT_EQ(sent_.size(), 1U);
  privatemail_session* none = nullptr;
  EXPECT_STREQ(privatemail_session_new("", nullptr, &none),
               "INVALID_ARGUMENT: collection must be given, but is empty");
}

}  // namespace
}  // namespace privatemail::client::c_test
