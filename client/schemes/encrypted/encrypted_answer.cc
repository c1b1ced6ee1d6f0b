#include "client/schemes/encrypted/encrypted_answer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/schemes/encrypted/row_table.h"
#include "client/schemes/memory_budget.h"
#include "common/base/digests.h"
#include "common/base/status_macros.h"
#include "common/lattice/scores.h"

namespace privatemail::client {
namespace {

using lattice::kAnswerBytes;

absl::Status OutOfOrder(const char* part, const char* expected) {
  return absl::DataLossError(
      absl::StrCat(part, " of the answer must come ", expected, ", but does not"));
}

}  // namespace

absl::Status EncryptedAnswer::Reserve(uint64_t bytes) {
  memory_ += bytes;
  return CheckMemory(static_cast<double>(memory_), "the server's answer", max_memory_);
}

absl::Status EncryptedAnswer::Add(AnswerPart part, uint64_t bytes) {
  if (auto* const header = std::get_if<AnswerHeader>(&part)) {
    score_bytes_ += bytes;
    if (last_ != Part::kNothing) return OutOfOrder("the header", "first and once");
    last_ = Part::kHeader;
    return AddHeader(std::move(*header));
  }
  if (auto* const scores = std::get_if<AnswerScores>(&part)) {
    score_bytes_ += bytes;
    if (last_ == Part::kNothing) return OutOfOrder("scores", "after the header");
    last_ = Part::kScores;
    return AddScores(*scores);
  }
  auto* const block = std::get_if<AnswerBlock>(&part);
  if (block == nullptr) return absl::DataLossError("part of the answer must be set, but is not");
  if (!block->of_payloads) {
    table_bytes_ += bytes;
    if (last_ != Part::kHeader && last_ != Part::kTable) {
      return OutOfOrder("the row table", "between header and payloads");
    }
    last_ = Part::kTable;
    return AddBlock("row table", header_.table_digests, std::move(*block), &table_blocks_);
  }
  payload_bytes_ += bytes;
  if (last_ == Part::kNothing || last_ == Part::kScores) {
    return OutOfOrder("payloads", "between row table and scores");
  }
  if (last_ != Part::kPayloads) last_block_ = -1;
  last_ = Part::kPayloads;
  return AddBlock("payloads", header_.payload_digests, std::move(*block), &payload_blocks_);
}

absl::Status EncryptedAnswer::AddHeader(AnswerHeader header) {
  header_ = std::move(header);
  if (header_.keys_missing) {
    header_.table_digests.clear();
    header_.payload_digests.clear();
    return absl::OkStatus();
  }
  const size_t digests = header_.table_digests.size();
  if (digests == 0 || digests % kBlockDigestBytes != 0) {
    return absl::DataLossError(absl::StrCat("table_digests must have ", kBlockDigestBytes,
                                            " bytes for each block and be at least one, but have ",
                                            digests, " bytes"));
  }
  const size_t payload_digests = with_payloads_ ? digests : 0;
  if (header_.payload_digests.size() != payload_digests) {
    return absl::DataLossError(absl::StrCat("payload_digests must have ", payload_digests,
                                            " bytes, but have ", header_.payload_digests.size()));
  }
  const size_t blocks = digests / kBlockDigestBytes;
  expected_bytes_ = uint64_t{blocks} * kAnswerBytes;
  PM_RETURN_IF_ERROR(Reserve(digests + payload_digests + queries_ * expected_bytes_));
  scores_.assign(queries_, std::string());
  for (std::string& scores : scores_) scores.reserve(static_cast<size_t>(expected_bytes_));
  return absl::OkStatus();
}

absl::Status EncryptedAnswer::AddBlock(const std::string& what, const std::string& digests,
                                       AnswerBlock block,
                                       std::map<std::string, std::string>* blocks) {
  const auto index = static_cast<int64_t>(block.block);
  if (index <= last_block_ || static_cast<size_t>(index) >= digests.size() / kBlockDigestBytes) {
    return absl::DataLossError(absl::StrCat(
        "block of the ", what, " must be between ", last_block_ + 1, " and ",
        static_cast<int64_t>(digests.size() / kBlockDigestBytes) - 1, ", but is ", index));
  }
  last_block_ = index;
  PM_RETURN_IF_ERROR(Reserve(block.content.size()));
  const std::string digest =
      digests.substr(static_cast<size_t>(index) * kBlockDigestBytes, kBlockDigestBytes);
  if (Sha256::Of(block.content) != digest) {
    return absl::DataLossError(
        absl::StrCat("block ", index, " of the ", what, " does not have the digest of the header"));
  }
  (*blocks)[digest] = std::move(block.content);
  return absl::OkStatus();
}

absl::Status EncryptedAnswer::AddScores(const AnswerScores& scores) {
  if (scores.query >= scores_.size()) {
    return absl::DataLossError(
        absl::StrCat("scores.query must be less than ", scores_.size(), ", but is ", scores.query));
  }
  std::string& received = scores_[scores.query];
  const uint64_t next = received.size() / kAnswerBytes, left = expected_bytes_ - received.size();
  if (scores.first_block != next) {
    return absl::DataLossError(
        absl::StrCat("scores.first_block must be ", next, ", but is ", scores.first_block));
  }
  const size_t bytes = scores.answers.size();
  if (bytes == 0 || bytes % kAnswerBytes != 0 || bytes > left) {
    return absl::DataLossError(absl::StrCat("scores.answers must have ", kAnswerBytes,
                                            " bytes for each of 1 to ", left / kAnswerBytes,
                                            " blocks, but have ", bytes));
  }
  received += scores.answers;
  return absl::OkStatus();
}

absl::Status EncryptedAnswer::CheckComplete() const {
  if (last_ == Part::kNothing) {
    return absl::DataLossError("the answer must begin with a header, but is empty");
  }
  for (size_t query = 0; query < scores_.size(); ++query) {
    if (scores_[query].size() == expected_bytes_) continue;
    return absl::DataLossError(absl::StrCat("scores of query ", query, " must have ",
                                            expected_bytes_, " bytes, but have ",
                                            scores_[query].size()));
  }
  return absl::OkStatus();
}

}  // namespace privatemail::client
