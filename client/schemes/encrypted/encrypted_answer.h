// The answer to an encrypted search, checked message by message as it arrives.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_ANSWER_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"

namespace privatemail::client {

// The parts of an answer, as v1.SearchEncryptedResponse has them.
struct AnswerHeader {
  bool keys_missing = false;
  uint64_t items_version = 0, items = 0;
  std::string table_digests = {}, payload_digests = {};
};
struct AnswerBlock {
  bool of_payloads = false;
  uint32_t block = 0;
  std::string content = {};
};
struct AnswerScores {
  uint32_t query = 0, first_block = 0;
  std::string answers = {};
};
using AnswerPart = std::variant<std::monostate, AnswerHeader, AnswerBlock, AnswerScores>;

// Collects the messages of an untrusted server. Held by the client; all in it is public. The
// request and the header determine every size, which is all that is checked of scores: no answer of
// the right size is refused for what it decrypts to.
class EncryptedAnswer {
 public:
  // queries, with_payloads: of the request. max_memory: bytes that the answer may take.
  EncryptedAnswer(size_t queries, bool with_payloads, int64_t max_memory)
      : queries_(queries), with_payloads_(with_payloads), max_memory_(max_memory) {}

  // Takes the next message, of so many bytes.
  // DATA_LOSS naming the field: it is out of order, has another size than the header says, or a
  //   block does not have its digest.
  // RESOURCE_EXHAUSTED: the answer takes more than max_memory.
  absl::Status Add(AnswerPart part, uint64_t bytes);
  // DATA_LOSS: scores are missing. Blocks may be missing: the searcher has them.
  absl::Status CheckComplete() const;

  const AnswerHeader& header() const { return header_; }
  // For each query kAnswerBytes a block (common/lattice/scores.h).
  const std::vector<std::string>& scores() const { return scores_; }
  // The blocks that were sent, by digest.
  const std::map<std::string, std::string>& table_blocks() const { return table_blocks_; }
  const std::map<std::string, std::string>& payload_blocks() const { return payload_blocks_; }
  std::map<std::string, std::string> TakeTableBlocks() { return std::move(table_blocks_); }
  std::map<std::string, std::string> TakePayloadBlocks() { return std::move(payload_blocks_); }

  // Approximate bytes that all of it takes.
  uint64_t memory() const { return memory_; }
  // The bytes of all messages, by their content; the header counts with the scores.
  uint64_t table_bytes() const { return table_bytes_; }
  uint64_t payload_bytes() const { return payload_bytes_; }
  uint64_t score_bytes() const { return score_bytes_; }

 private:
  enum class Part { kNothing, kHeader, kTable, kPayloads, kScores };

  absl::Status AddHeader(AnswerHeader header);
  absl::Status AddBlock(const std::string& what, const std::string& digests, AnswerBlock block,
                        std::map<std::string, std::string>* blocks);
  absl::Status AddScores(const AnswerScores& scores);
  absl::Status Reserve(uint64_t bytes);

  size_t queries_;
  bool with_payloads_;
  int64_t max_memory_;
  Part last_ = Part::kNothing;
  int64_t last_block_ = -1;  // of the table or the payloads
  uint64_t memory_ = 0;
  AnswerHeader header_;
  uint64_t expected_bytes_ = 0;  // of the scores of a query
  std::vector<std::string> scores_;
  std::map<std::string, std::string> table_blocks_;
  std::map<std::string, std::string> payload_blocks_;
  uint64_t table_bytes_ = 0, payload_bytes_ = 0, score_bytes_ = 0;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_ANSWER_H_
