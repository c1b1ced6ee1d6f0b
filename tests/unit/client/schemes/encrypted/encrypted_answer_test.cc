#include "client/schemes/encrypted/encrypted_answer.h"

#include <vector>

#include "client/schemes/encrypted/encrypted_messages.h"
#include "privatemail/client_limits.h"
#include "tests/testing/encrypted_things.h"

namespace privatemail::client::encrypted_answer_test {
namespace {

using Messages = std::vector<v1::SearchEncryptedResponse>;

constexpr size_t kAnswer = lattice::kAnswerBytes;

// A request of two queries over two blocks, and its honest answer with arbitrary scores: header,
// two table blocks, two payload blocks, the scores of each query.
class EncryptedAnswerTest : public testing::Test {
 protected:
  EncryptedAnswerTest() {
    messages_.resize(5);
    v1::EncryptedSearchHeader* header = messages_[0].mutable_header();
    for (uint32_t block = 0; block < 2; ++block) {
      v1::RowBlock* table = messages_[1 + block].mutable_table_block();
      table->set_block(block);
      table->set_content(things_.TableBlock(block));
      header->mutable_table_digests()->append(Sha256::Of(table->content()));
      v1::RowBlock* payloads = messages_[3 + block].mutable_payload_block();
      payloads->set_block(block);
      payloads->set_content(things_.PayloadBlock(block));
      header->mutable_payload_digests()->append(Sha256::Of(payloads->content()));
    }
    for (uint32_t query = 0; query < 2; ++query) {
      v1::EncryptedScores* scores = messages_.emplace_back().mutable_scores();
      scores->set_query(query);
      scores->set_answers(std::string(2 * kAnswer, static_cast<char>('a' + query)));
    }
  }

  absl::StatusOr<EncryptedAnswer> Take(const Messages& messages, int64_t max_memory = kMaxMemory) {
    EncryptedAnswer answer(/*queries=*/2, with_payloads_, max_memory);
    for (const auto& message : messages) {
      const absl::Status status = answer.Add(ToAnswerPart(message), message.ByteSizeLong());
      if (!status.ok()) return status;
    }
    if (absl::Status status = answer.CheckComplete(); !status.ok()) return status;
    return answer;
  }

  // With message `index` changed.
  void ExpectRefused(size_t index, const char* message, const auto& change) {
    Messages messages = messages_;
    change(&messages[index]);
    EXPECT_THAT(Take(messages), FailsWith(kDataLoss, message));
  }

  absl::Status WithOrder(const std::vector<size_t>& order) {
    Messages messages;
    for (const size_t i : order) messages.push_back(messages_[i]);
    return Take(messages).status();
  }

  using Message = v1::SearchEncryptedResponse;
  const EncryptedThings things_{NormalRows(2050, 4, 1)};
  bool with_payloads_ = true;
  Messages messages_;
};

TEST_F(EncryptedAnswerTest, PartsAreCollected) {
  ASSERT_OK_AND_ASSIGN(const EncryptedAnswer answer, Take(messages_));
  EXPECT_EQ(answer.table_blocks().size(), 2U);
  EXPECT_EQ(answer.table_blocks().at(Sha256::Of(things_.TableBlock(1))), things_.TableBlock(1));
  EXPECT_EQ(answer.payload_blocks().size(), 2U);
  EXPECT_EQ(answer.scores(), (std::vector<std::string>{std::string(2 * kAnswer, 'a'),
                                                       std::string(2 * kAnswer, 'b')}));
  EXPECT_EQ(answer.table_bytes(), messages_[1].ByteSizeLong() + messages_[2].ByteSizeLong());
  EXPECT_EQ(answer.payload_bytes(), messages_[3].ByteSizeLong() + messages_[4].ByteSizeLong());
  EXPECT_EQ(answer.score_bytes(), messages_[0].ByteSizeLong() + messages_[5].ByteSizeLong() +
                                      messages_[6].ByteSizeLong());
}

TEST_F(EncryptedAnswerTest, ScoresMayComeByBlocksOfAllQueries) {
  Messages messages(messages_.begin(), messages_.begin() + 5);
  for (uint32_t block = 0; block < 2; ++block) {
    for (uint32_t query = 0; query < 2; ++query) {
      v1::EncryptedScores* scores = messages.emplace_back().mutable_scores();
      scores->set_query(query);
      scores->set_first_block(block);
      scores->set_answers(std::string(kAnswer, static_cast<char>('a' + query)));
    }
  }
  ASSERT_OK_AND_ASSIGN(const EncryptedAnswer answer, Take(messages));
  EXPECT_EQ(answer.scores(), Take(messages_)->scores());
}

TEST_F(EncryptedAnswerTest, HeldBlocksAreNotSent) {
  EXPECT_THAT(WithOrder({0, 5, 6}), IsOk());
  EXPECT_THAT(WithOrder({0, 2, 3, 5, 6}), IsOk());
}

TEST_F(EncryptedAnswerTest, MissingKeysComeAlone) {
  Message missing;
  missing.mutable_header()->set_keys_missing(true);
  missing.mutable_header()->set_table_digests(messages_[0].header().table_digests());
  ASSERT_OK_AND_ASSIGN(const EncryptedAnswer answer, Take({missing}));
  EXPECT_TRUE(answer.header().keys_missing);
  EXPECT_THAT(Take({missing, messages_[1]}), FailsWith(kDataLoss, "must be between 0 and -1"));
  EXPECT_THAT(Take({missing, messages_[5]}), FailsWith(kDataLoss, "scores.query"));
}

TEST_F(EncryptedAnswerTest, PartsOutOfOrderReturnDataLoss) {
  EXPECT_THAT(WithOrder({}), FailsWith(kDataLoss, "must begin with a header"));
  EXPECT_THAT(WithOrder({1}), FailsWith(kDataLoss, "between header and payloads"));
  EXPECT_THAT(WithOrder({3}), FailsWith(kDataLoss, "between row table and scores"));
  EXPECT_THAT(WithOrder({5}), FailsWith(kDataLoss, "after the header"));
  EXPECT_THAT(WithOrder({0, 0}), FailsWith(kDataLoss, "first and once"));
  EXPECT_THAT(WithOrder({0, 2, 1}), FailsWith(kDataLoss, "must be between 2 and 1, but is 0"));
  EXPECT_THAT(WithOrder({0, 1, 1}), FailsWith(kDataLoss, "must be between 1 and 1, but is 0"));
  EXPECT_THAT(WithOrder({0, 3, 1}), FailsWith(kDataLoss, "between header and payloads"));
  EXPECT_THAT(WithOrder({0, 5, 3}), FailsWith(kDataLoss, "between row table and scores"));
  EXPECT_THAT(WithOrder({0, 5, 5}), FailsWith(kDataLoss, "first_block must be 2, but is 0"));
  EXPECT_THAT(Take({Message()}), FailsWith(kDataLoss, "part of the answer must be set"));
}

TEST_F(EncryptedAnswerTest, WrongSizesReturnDataLoss) {
  for (const size_t bytes : {size_t{0}, size_t{31}, size_t{65}}) {
    ExpectRefused(0, "table_digests must",
                  [&](auto* m) { m->mutable_header()->mutable_table_digests()->resize(bytes); });
  }
  ExpectRefused(0, "payload_digests must",
                [](auto* m) { m->mutable_header()->clear_payload_digests(); });
  const auto with_scores = [this](size_t query, size_t bytes, const char* message) {
    ExpectRefused(5 + query, message,
                  [&](auto* m) { m->mutable_scores()->mutable_answers()->resize(bytes); });
  };
  for (const size_t bytes : {size_t{0}, kAnswer - 1, 2 * kAnswer - 1, 3 * kAnswer}) {
    with_scores(0, bytes, "scores.answers must have 9216 bytes for each of 1 to 2");
  }
  // A whole block too few is seen at the end.
  with_scores(1, kAnswer, "scores of query 1 must have 18432 bytes, but have 9216");
  ExpectRefused(6, "scores.query must", [](auto* m) { m->mutable_scores()->set_query(2); });
  EXPECT_THAT(WithOrder({0, 1, 2, 3, 4, 5}), FailsWith(kDataLoss, "scores of query 1"));
}

TEST_F(EncryptedAnswerTest, BlocksWithAnotherDigestReturnDataLoss) {
  ExpectRefused(2, "block 1 of the row table",
                [](auto* m) { m->mutable_table_block()->set_content("x"); });
  ExpectRefused(4, "block 1 of the payloads",
                [](auto* m) { m->mutable_payload_block()->set_content("x"); });
}

TEST_F(EncryptedAnswerTest, PayloadsThatWereNotAskedForReturnDataLoss) {
  with_payloads_ = false;
  EXPECT_THAT(Take(messages_), FailsWith(kDataLoss, "payload_digests must have 0 bytes"));
  messages_[0].mutable_header()->clear_payload_digests();
  EXPECT_THAT(Take(messages_), FailsWith(kDataLoss, "block of the payloads must"));
}

// Before anything of that size is allocated.
TEST_F(EncryptedAnswerTest, MoreThanMaxMemoryIsRefusedAtTheHeader) {
  with_payloads_ = false;
  Messages huge(1);
  huge[0].mutable_header()->set_table_digests(std::string(32 * 100'000, 'x'));
  EXPECT_THAT(Take(huge), FailsWith(kExhausted, "max_memory must be at least 1846400000"));
  with_payloads_ = true;
  EXPECT_THAT(Take(messages_, 30'000), FailsWith(kExhausted));
}

}  // namespace
}  // namespace privatemail::client::encrypted_answer_test
