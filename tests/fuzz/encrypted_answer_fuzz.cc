// Fuzzes a searcher's reading of an encrypted search's answer: a stream of messages, the blocks of
// the row table and of payloads in them, and the scores. An answer that passes the checks of sizes
// and digests is ranked; what its scores decrypt to makes no difference.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/schemes/encrypted/encrypted_answer.h"
#include "client/schemes/encrypted/encrypted_client.h"
#include "client/schemes/encrypted/encrypted_messages.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/digests.h"
#include "common/lattice/scores.h"
#include "common/wire/proto_conversions.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail::client {
namespace {

constexpr int64_t kFuzzMemory = 1 << 20;

// A collection with vectors of 2 dimensions.
v1::GetCollectionResponse Collection() {
  PublicParameters parameters = *MakeParametersWithoutAnchors("uuid", "vectors", Metric::kCosine);
  parameters.feature_dim = 2;
  v1::GetCollectionResponse collection;
  ToProto(parameters, collection.mutable_parameters());
  collection.set_fingerprint(Fingerprint(parameters));
  collection.mutable_encrypted()->set_delta(32);
  collection.mutable_encrypted()->set_rows(1);
  return collection;
}

// The first byte has flags. Each message is preceded by its size in a byte or, if that is 255, by
// two more.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : flags_(data[0]), data_(data + 1), left_(size - 1) {}

  size_t queries() const { return flags_ % 4; }
  bool with_payloads() const { return (flags_ & 4) != 0; }
  bool corrects_digests() const { return (flags_ & 8) != 0; }
  bool fills_scores() const { return (flags_ & 16) != 0; }

  std::vector<v1::SearchEncryptedResponse> Messages() {
    std::vector<v1::SearchEncryptedResponse> messages;
    while (left_ > 0) {
      size_t size = Next();
      if (size == 255) size = Next() * 256 + Next();
      size = std::min(size, left_);
      v1::SearchEncryptedResponse message;
      (void)message.ParseFromArray(data_, static_cast<int>(size));
      messages.push_back(std::move(message));
      data_ += size;
      left_ -= size;
    }
    if (fills_scores()) FillScores(&messages);
    if (corrects_digests()) CorrectDigests(&messages);
    return messages;
  }

 private:
  size_t Next() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  // Repeats the bytes of answers to whole blocks.
  static void FillScores(std::vector<v1::SearchEncryptedResponse>* messages) {
    for (v1::SearchEncryptedResponse& message : *messages) {
      if (!message.has_scores() || message.scores().answers().empty()) continue;
      const std::string given = message.scores().answers();
      std::string* answers = message.mutable_scores()->mutable_answers();
      while (answers->size() < lattice::kAnswerBytes * (1 + given.size() % 3)) *answers += given;
      answers->resize(lattice::kAnswerBytes * (1 + given.size() % 3));
    }
  }

  // Gives the header the digests of the blocks that follow.
  static void CorrectDigests(std::vector<v1::SearchEncryptedResponse>* messages) {
    if (messages->empty() || !messages->front().has_header()) return;
    v1::EncryptedSearchHeader* header = messages->front().mutable_header();
    for (const v1::SearchEncryptedResponse& message : *messages) {
      const bool table = message.has_table_block();
      if (!table && !message.has_payload_block()) continue;
      const v1::RowBlock& block = table ? message.table_block() : message.payload_block();
      std::string* digests =
          table ? header->mutable_table_digests() : header->mutable_payload_digests();
      if (block.block() < digests->size() / kBlockDigestBytes) {
        digests->replace(block.block() * kBlockDigestBytes, kBlockDigestBytes,
                         Sha256::Of(block.content()));
      }
    }
  }

  uint8_t flags_;
  const uint8_t* data_;
  size_t left_;
};

// A block that was sent, or null.
template <typename Block>
std::shared_ptr<const Block> BlockOf(const std::map<std::string, std::string>& blocks,
                                     const std::string& digests, size_t index) {
  const auto sent = blocks.find(digests.substr(index * kBlockDigestBytes, kBlockDigestBytes));
  if (sent == blocks.end()) return nullptr;
  Require(Sha256::Of(sent->second) == sent->first);
  const auto block = Block::Parse(sent->second, kFuzzMemory);
  if (block.ok()) return *block;
  Require(absl::IsDataLoss(block.status()) || absl::IsResourceExhausted(block.status()));
  return nullptr;
}

void Rank(const EncryptedAnswer& answer, bool with_payloads) {
  const std::string& digests = answer.header().table_digests;
  RowTable::TableBlocks table;
  RowTable::PayloadBlocks payloads;
  for (size_t block = 0; block < digests.size() / kBlockDigestBytes; ++block) {
    table.push_back(BlockOf<TableBlock>(answer.table_blocks(), digests, block));
    if (table.back() == nullptr) return;
    if (!with_payloads) continue;
    payloads.push_back(
        BlockOf<PayloadBlock>(answer.payload_blocks(), answer.header().payload_digests, block));
    if (payloads.back() == nullptr) return;
  }
  const auto rows = RowTable::Create(table, payloads);
  if (!rows.ok()) return Require(absl::IsDataLoss(rows.status()));

  static SeededBits bits(1);
  static const EncryptedClient client = *EncryptedClient::Create(Collection());
  static const auto session = *EncryptedSession::Create(client.delta(), bits);
  for (const std::string& scores : answer.scores()) {
    auto query = client.Prepare(Eigen::RowVectorXf::Ones(2), session, bits);
    Require(query.ok());
    const auto matches = client.Finish(std::move(query->state), scores, *rows,
                                       {.k = 3, .with_payloads = with_payloads});
    Require(matches.ok() && matches->size() <= 3);
    for (const Match& match : *matches) {
      Require(!match.id.empty() && std::isfinite(match.squared_distance));
    }
  }
}

}  // namespace
}  // namespace privatemail::client

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace privatemail;
  using namespace privatemail::client;
  if (size == 0) return 0;
  Input input(data, size);
  EncryptedAnswer answer(input.queries(), input.with_payloads(), kFuzzMemory);
  for (v1::SearchEncryptedResponse& message : input.Messages()) {
    const uint64_t bytes = message.ByteSizeLong();
    const absl::Status added = answer.Add(ToAnswerPart(std::move(message)), bytes);
    if (added.ok()) continue;
    Require(absl::IsDataLoss(added) || absl::IsResourceExhausted(added));
    return 0;
  }
  if (!answer.CheckComplete().ok() || answer.header().keys_missing) return 0;
  const size_t blocks = answer.header().table_digests.size() / kBlockDigestBytes;
  Require(answer.scores().size() == input.queries());
  for (const std::string& scores : answer.scores()) {
    Require(scores.size() == blocks * lattice::kAnswerBytes);
  }
  Rank(answer, input.with_payloads());
  return 0;
}
