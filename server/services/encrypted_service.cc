#include "server/services/encrypted_service.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/sha256.h"
#include "common/base/shake128.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"
#include "common/lattice/evaluator.h"
#include "server/engine/score_pass.h"
#include "server/services/collection_state.h"
#include "server/services/rpc_table.h"

namespace privatemail::server {
namespace {

using Writer = MessageWriter<v1::SearchEncryptedResponse>;

constexpr int64_t kDigestBytes = 32;
constexpr int64_t kEvaluationKeysBytes = int64_t{256} << 20;  // of some hundred sessions
// Answers of a message: a little less than a megabyte.
constexpr size_t kBlocksPerMessage = 100;

absl::Status CheckBytes(absl::string_view field, absl::string_view value, int64_t expected) {
  if (std::ssize(value) == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must have ", expected, " bytes, but has ", value.size()));
}

absl::Status CheckRequest(const v1::SearchEncryptedRequest& request,
                          const PublicParameters& parameters) {
  if (!lattice::IsDelta(request.delta())) {
    return absl::InvalidArgumentError(absl::StrCat("delta must be one of ",
                                                   absl::StrJoin(lattice::kDeltas, ", "),
                                                   ", but is ", request.delta()));
  }
  const auto delta = static_cast<int>(request.delta());
  PM_RETURN_IF_ERROR(CheckBytes("keys_digest", request.keys_digest(), kDigestBytes));
  if (!request.keys().empty()) {
    PM_RETURN_IF_ERROR(
        CheckBytes("keys", request.keys(), static_cast<int64_t>(lattice::KeysBytes(delta))));
    if (Sha256::Of(request.keys()) != request.keys_digest()) {
      return absl::InvalidArgumentError("keys_digest must be the SHA-256 of keys, but is not");
    }
  }
  if (request.queries().empty()) {
    return absl::InvalidArgumentError("queries must hold at least one, but hold none");
  }
  const auto chunk_bytes =
      static_cast<int64_t>(lattice::QueryChunkBytes(parameters.feature_dim, delta));
  for (int i = 0; i < request.queries_size(); ++i) {
    const v1::EncryptedQuery& query = request.queries(i);
    const std::string field = absl::StrCat("queries[", i, "]");
    PM_RETURN_IF_ERROR(CheckBytes(absl::StrCat(field, ".seed"), query.seed(),
                                  static_cast<int64_t>(lattice::kSeedBytes)));
    PM_RETURN_IF_ERROR(CheckBytes(absl::StrCat(field, ".chunks"), query.chunks(), chunk_bytes));
  }
  if (request.with_payloads() || request.known_payload_blocks().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "known_payload_blocks must not be given unless with_payloads is set");
}

// Before any work: the memory of the answers and of what computes them.
absl::Status ReserveMemory(const v1::SearchEncryptedRequest& request, int64_t blocks,
                           int64_t dimensions, Call& call) {
  const int64_t bytes = ScorePass::MemoryFor(request.queries_size(), blocks, dimensions,
                                             static_cast<int>(request.delta()));
  PM_RETURN_IF_ERROR(CheckLimit("memory of this search in bytes", bytes,
                                call.limits().max_request_memory, "max_request_memory"));
  return call.ReserveSearchMemory(bytes);
}

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

// The first 8 bytes of a digest, as searchers name blocks that they hold.
uint64_t PrefixOf(absl::string_view digest) {
  uint64_t prefix = 0;
  for (int byte = 7; byte >= 0; --byte) {
    prefix = prefix << 8 | static_cast<uint8_t>(digest[static_cast<size_t>(byte)]);
  }
  return prefix;
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
  const std::set<uint64_t> known(request.known_blocks().begin(), request.known_blocks().end());
  for (size_t i = 0; i < rows.blocks.size(); ++i) {
    if (known.count(PrefixOf(rows.blocks[i]->table_digest())) > 0) continue;
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
  const std::set<uint64_t> known(request.known_payload_blocks().begin(),
                                 request.known_payload_blocks().end());
  for (size_t i = 0; i < rows.blocks.size(); ++i) {
    if (known.count(PrefixOf(rows.blocks[i]->payload_digest())) > 0) continue;
    v1::SearchEncryptedResponse response;
    response.mutable_payload_block()->set_block(static_cast<uint32_t>(i));
    response.mutable_payload_block()->set_content(rows.blocks[i]->Payloads());
    PM_RETURN_IF_ERROR(Send(response, call, writer));
  }
  return absl::OkStatus();
}

}  // namespace

EncryptedService::EncryptedService(const Catalog* catalog, Dispatcher* dispatcher)
    : catalog_(catalog), dispatcher_(dispatcher), keys_(kEvaluationKeysBytes) {}

absl::StatusOr<EvaluationKeyCache::Handle> EncryptedService::FindKeys(
    const v1::SearchEncryptedRequest& request) {
  EvaluationKeyCache::Handle keys = keys_.Find(request.keys_digest());
  if (keys == nullptr && !request.keys().empty()) {
    keys = lattice::Evaluator::Best().ParseKeys(request.keys(), static_cast<int>(request.delta()),
                                                Shake128);
    if (keys == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("keys must hold numbers less than ", lattice::kModulus, ", but do not"));
    }
    const auto bytes = static_cast<int64_t>(lattice::EvaluationKeys::Memory(keys->delta));
    PM_ASSIGN_OR_RETURN(MemoryReservation memory,
                        catalog_->ReserveMemory("the evaluation keys of a session", bytes));
    keys_.Add(request.keys_digest(), keys,
              std::make_shared<const MemoryReservation>(std::move(memory)));
  }
  if (keys == nullptr || keys->delta == static_cast<int>(request.delta())) return keys;
  return absl::InvalidArgumentError(
      absl::StrCat("delta must be that of the keys, ", keys->delta, ", but is ", request.delta()));
}

absl::Status EncryptedService::Search(const v1::SearchEncryptedRequest& request, Call& call,
                                      Writer& writer) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindCollection(*catalog_, request.collection(), request.fingerprint()));
  const PublicParameters& parameters = view.published->parameters;
  PM_RETURN_IF_ERROR(CheckHasEncrypted(request.collection(), parameters));
  PM_RETURN_IF_ERROR(CheckHasItems(view));
  PM_RETURN_IF_ERROR(CheckRequest(request, parameters));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const EncryptedRows> rows, RequireRows(view));
  PM_ASSIGN_OR_RETURN(const EvaluationKeyCache::Handle keys, FindKeys(request));
  if (keys == nullptr) {
    v1::SearchEncryptedResponse response;
    response.mutable_header()->set_keys_missing(true);
    return Send(response, call, writer);
  }
  PM_RETURN_IF_ERROR(
      ReserveMemory(request, std::ssize(rows->blocks), parameters.feature_dim, call));
  PM_ASSIGN_OR_RETURN(auto queries, ParseQueries(request, parameters.feature_dim));
  PM_ASSIGN_OR_RETURN(const ScorePass::Answer answer,
                      view.encrypted->pass().Score({keys, std::move(queries)},
                                                   [&call] { return call.Cancelled(); }));
  const auto& scored = *static_cast<const EncryptedRows*>(answer.rows.owner.get());
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
