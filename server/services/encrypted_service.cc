#include "server/services/encrypted_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/sha256.h"
#include "common/base/shake128.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"
#include "common/lattice/evaluator.h"
#include "server/engine/score_pass.h"
#include "server/services/collection_state.h"
#include "server/services/encrypted_request.h"
#include "server/services/rpc_table.h"

namespace privatemail::server {
namespace {

using Writer = MessageWriter<v1::SearchEncryptedResponse>;

// Answers of a message: a little less than a megabyte.
constexpr size_t kBlocksPerMessage = 100;
constexpr int64_t kBlockMessageOverhead = 32;  // tags, lengths and the block's number

// The bytes of the largest message with a block that the searcher may lack.
size_t LargestBlock(const EncryptedRows& rows, bool with_payloads) {
  size_t largest = 0;
  for (const auto& block : rows.blocks) {
    largest = std::max(largest, block->table_bytes());
    if (with_payloads) largest = std::max(largest, block->payload_bytes());
  }
  return largest;
}

// A block is one message, and gRPC ends a call that sends a longer message than the limit.
absl::Status CheckBlockSizes(const EncryptedRows& rows, bool with_payloads, const Limits& limits) {
  const int64_t max_bytes = MaxSentMessageBytes(limits);
  for (size_t i = 0; i < rows.blocks.size(); ++i) {
    const EncryptedBlock& block = *rows.blocks[i];
    const auto check = [&](absl::string_view what, size_t bytes,
                           absl::string_view remedy) -> absl::Status {
      if (static_cast<int64_t>(bytes) + kBlockMessageOverhead <= max_bytes) return absl::OkStatus();
      return absl::ResourceExhaustedError(absl::StrCat(
          what, " block ", i, " of the collection has ", bytes,
          " bytes, but a message has at most ", max_bytes, " (max_message_bytes): ", remedy));
    };
    PM_RETURN_IF_ERROR(check("table", block.table_bytes(), "the operator can raise it"));
    if (!with_payloads) continue;
    PM_RETURN_IF_ERROR(check("payload", block.payload_bytes(),
                             "search without payloads; the operator can raise it"));
  }
  return absl::OkStatus();
}

// Before any work: the memory of the answers, of what computes them, and of the largest message.
// keys_bytes: of evaluation keys that the cache does not count.
absl::Status ReserveMemory(const v1::SearchEncryptedRequest& request, const EncryptedRows& rows,
                           int64_t dimensions, int64_t keys_bytes, Call& call) {
  const int64_t scores = ScorePass::MemoryFor(request.queries_size(), std::ssize(rows.blocks),
                                              dimensions, static_cast<int>(request.delta()));
  // A block exists as its parts, as their serialised form and as the message.
  const auto block = 3 * static_cast<int64_t>(LargestBlock(rows, request.with_payloads()));
  const int64_t known =
      int64_t{8} * std::max(request.known_blocks_size(), request.known_payload_blocks_size());
  const int64_t bytes = scores + block + known + keys_bytes;
  PM_RETURN_IF_ERROR(CheckLimit("memory of this search in bytes", bytes,
                                call.limits().max_request_memory, "max_request_memory"));
  return call.ReserveSearchMemory(bytes);
}

// The digests of blocks that a searcher holds.
class KnownBlocks {
 public:
  explicit KnownBlocks(const google::protobuf::RepeatedField<uint64_t>& prefixes)
      : prefixes_(prefixes.begin(), prefixes.end()) {
    std::sort(prefixes_.begin(), prefixes_.end());
  }
  bool Has(absl::string_view digest) const {
    return std::binary_search(prefixes_.begin(), prefixes_.end(), Sha256::Prefix(digest));
  }

 private:
  std::vector<uint64_t> prefixes_;
};

absl::StatusOr<std::vector<std::shared_ptr<const lattice::Query>>> ParseQueries(
    const v1::SearchEncryptedRequest& request, int64_t dimensions) {
  std::vector<std::shared_ptr<const lattice::Query>> queries;
  for (int i = 0; i < request.queries_size(); ++i) {
    const v1::EncryptedQuery& query = request.queries(i);
    queries.push_back(lattice::Evaluator::Best().ParseQuery(
        query.seed(), query.chunks(), dimensions, static_cast<int>(request.delta()), Shake128));
    if (queries.back() != nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "queries[", i, "].chunks must hold numbers less than ", lattice::kModulus, ", but do not"));
  }
  return queries;
}

absl::Status Send(const v1::SearchEncryptedResponse& response, Call& call, Writer& writer) {
  if (writer.Write(response)) return absl::OkStatus();
  PM_RETURN_IF_ERROR(call.StreamStatus());
  return absl::CancelledError("the caller stopped reading");
}

absl::Status SendScores(const ScorePass::Answer& answer, Call& call, Writer& writer) {
  for (size_t query = 0; query < answer.scores.size(); ++query) {
    const absl::string_view scores = answer.scores[query];
    const size_t blocks = scores.size() / lattice::kAnswerBytes;
    for (size_t first = 0; first < blocks; first += kBlocksPerMessage) {
      v1::SearchEncryptedResponse response;
      response.mutable_scores()->set_query(static_cast<uint32_t>(query));
      response.mutable_scores()->set_first_block(static_cast<uint32_t>(first));
      response.mutable_scores()->set_answers(std::string(
          scores.substr(first * lattice::kAnswerBytes, kBlocksPerMessage * lattice::kAnswerBytes)));
      PM_RETURN_IF_ERROR(Send(response, call, writer));
    }
  }
  return absl::OkStatus();
}

v1::SearchEncryptedResponse MakeHeader(const EncryptedRows& rows, bool with_payloads) {
  v1::SearchEncryptedResponse response;
  v1::EncryptedSearchHeader& header = *response.mutable_header();
  header.set_items_version(rows.items_version);
  header.set_items(static_cast<uint64_t>(rows.items));
  for (const auto& block : rows.blocks) {
    header.mutable_table_digests()->append(block->table_digest());
    if (with_payloads) header.mutable_payload_digests()->append(block->payload_digest());
  }
  return response;
}

// The blocks whose digests are not among the known ones.
absl::Status SendTable(const EncryptedRows& rows, const v1::SearchEncryptedRequest& request,
                       Call& call, Writer& writer) {
  const KnownBlocks known(request.known_blocks());
  for (size_t i = 0; i < rows.blocks.size(); ++i) {
    if (known.Has(rows.blocks[i]->table_digest())) continue;
    v1::SearchEncryptedResponse response;
    response.mutable_table_block()->set_block(static_cast<uint32_t>(i));
    response.mutable_table_block()->set_content(rows.blocks[i]->Table());
    PM_RETURN_IF_ERROR(Send(response, call, writer));
  }
  return absl::OkStatus();
}

absl::Status SendPayloads(const EncryptedRows& rows, const v1::SearchEncryptedRequest& request,
                          Call& call, Writer& writer) {
  if (!request.with_payloads()) return absl::OkStatus();
  const KnownBlocks known(request.known_payload_blocks());
  for (size_t i = 0; i < rows.blocks.size(); ++i) {
    if (known.Has(rows.blocks[i]->payload_digest())) continue;
    v1::SearchEncryptedResponse response;
    response.mutable_payload_block()->set_block(static_cast<uint32_t>(i));
    response.mutable_payload_block()->set_content(rows.blocks[i]->Payloads());
    PM_RETURN_IF_ERROR(Send(response, call, writer));
  }
  return absl::OkStatus();
}

}  // namespace

EncryptedService::EncryptedService(const Catalog* catalog, Dispatcher* dispatcher, Metrics* metrics)
    : catalog_(catalog), dispatcher_(dispatcher), metrics_(metrics) {}

absl::StatusOr<EncryptedService::Keys> EncryptedService::FindKeys(
    const v1::SearchEncryptedRequest& request) {
  Keys found = {.keys = catalog_->evaluation_keys().Find(request.keys_digest())};
  metrics_->CountEvaluationKeys(found.keys != nullptr);
  if (found.keys == nullptr && !request.keys().empty()) {
    const auto delta = static_cast<int>(request.delta());
    found.keys = lattice::Evaluator::Best().ParseKeys(request.keys(), delta, Shake128);
    if (found.keys == nullptr) {
      return InvalidField(
          "keys", absl::StrCat("must hold numbers less than ", lattice::kModulus, ", but do not"));
    }
    if (!catalog_->CacheEvaluationKeys(request.keys_digest(), found.keys)) {
      found.uncached_bytes = static_cast<int64_t>(lattice::EvaluationKeys::Memory(delta));
    }
  }
  if (found.keys == nullptr || found.keys->delta == static_cast<int>(request.delta())) return found;
  return InvalidField("delta", absl::StrCat("must be that of the keys, ", found.keys->delta,
                                            ", but is ", request.delta()));
}

absl::Status EncryptedService::Search(const v1::SearchEncryptedRequest& request, Call& call,
                                      Writer& writer) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindCollection(*catalog_, request.collection(), request.fingerprint()));
  const PublicParameters& parameters = view.published->parameters;
  PM_RETURN_IF_ERROR(CheckHasEncrypted(request.collection(), parameters));
  PM_RETURN_IF_ERROR(CheckHasItems(view));
  PM_RETURN_IF_ERROR(CheckEncryptedRequest(request, parameters));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const EncryptedRows> rows, RequireRows(view));
  PM_RETURN_IF_ERROR(CheckBlockSizes(*rows, request.with_payloads(), call.limits()));
  PM_ASSIGN_OR_RETURN(const Keys keys, FindKeys(request));
  if (keys.keys == nullptr) {
    v1::SearchEncryptedResponse response;
    response.mutable_header()->set_keys_missing(true);
    return Send(response, call, writer);
  }
  PM_RETURN_IF_ERROR(
      ReserveMemory(request, *rows, parameters.feature_dim, keys.uncached_bytes, call));
  PM_ASSIGN_OR_RETURN(auto queries, ParseQueries(request, parameters.feature_dim));
  PM_ASSIGN_OR_RETURN(const ScorePass::Answer answer,
                      view.encrypted->pass().Score({call.key_id(), keys.keys, std::move(queries)},
                                                   [&call] { return call.Cancelled(); }));
  const auto& scored = *static_cast<const EncryptedRows*>(answer.rows.owner.get());
  // The pass takes the rows of its start, which may be other ones.
  PM_RETURN_IF_ERROR(CheckHasItems(view.published->name, scored.items));
  PM_RETURN_IF_ERROR(CheckBlockSizes(scored, request.with_payloads(), call.limits()));
  call.AddRows(static_cast<uint64_t>(scored.rows) * static_cast<uint64_t>(request.queries_size()));
  PM_RETURN_IF_ERROR(Send(MakeHeader(scored, request.with_payloads()), call, writer));
  PM_RETURN_IF_ERROR(SendTable(scored, request, call, writer));
  PM_RETURN_IF_ERROR(SendPayloads(scored, request, call, writer));
  return SendScores(answer, call, writer);
}

WriteReactor* EncryptedService::SearchEncrypted(RpcContext* context, const Bytes* request) {
  return dispatcher_->ServeServerStream<v1::SearchEncryptedRequest, v1::SearchEncryptedResponse>(
      context, "SearchEncrypted", request, [this](Call& call, const auto& message, auto& writer) {
        return Search(message, call, writer);
      });
}

}  // namespace privatemail::server
