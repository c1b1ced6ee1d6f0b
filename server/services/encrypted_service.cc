#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/digests.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/stopwatch.h"
#include "common/embedding/offered_schemes.h"
#include "common/lattice/evaluator.h"
#include "common/lattice/wire.h"
#include "server/engine/score_pass.h"
#include "server/services/collection_state.h"
#include "server/services/sent_blocks.h"
#include "server/services/services.h"

namespace privatemail::server {
namespace {

// The most digests of one list of known blocks: those of two billion rows.
constexpr int kMaxKnownBlocks = 1 << 20;

constexpr int64_t kDigestBytes = 32;

absl::Status CheckBytes(absl::string_view field, absl::string_view value, int64_t expected) {
  if (std::ssize(value) == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must have ", expected, " bytes, but has ", value.size()));
}

absl::Status CheckCount(absl::string_view field, int count, int limit) {
  if (count <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must hold at most ", limit, ", but hold ", count));
}

absl::Status CheckKeys(const v1::SearchEncryptedRequest& request, int delta) {
  PM_RETURN_IF_ERROR(CheckBytes("keys_digest", request.keys_digest(), kDigestBytes));
  if (request.keys().empty()) return absl::OkStatus();
  PM_RETURN_IF_ERROR(
      CheckBytes("keys", request.keys(), static_cast<int64_t>(lattice::KeysBytes(delta))));
  if (Sha256::Of(request.keys()) == request.keys_digest()) return absl::OkStatus();
  return InvalidField("keys_digest", "must be the SHA-256 of keys, but is not");
}

absl::Status CheckQueries(const v1::SearchEncryptedRequest& request, int64_t dimensions,
                          int delta) {
  if (request.queries().empty()) {
    return InvalidField("queries", "must hold at least one, but hold none");
  }
  PM_RETURN_IF_ERROR(CheckCount("queries", request.queries_size(), kMaxQueriesPerRequest));
  const auto chunk_bytes = static_cast<int64_t>(lattice::QueryChunkBytes(dimensions, delta));
  for (int i = 0; i < request.queries_size(); ++i) {
    const v1::EncryptedQuery& query = request.queries(i);
    const std::string field = absl::StrCat("queries[", i, "]");
    PM_RETURN_IF_ERROR(CheckBytes(absl::StrCat(field, ".seed"), query.seed(),
                                  static_cast<int64_t>(lattice::kSeedBytes)));
    PM_RETURN_IF_ERROR(CheckBytes(absl::StrCat(field, ".chunks"), query.chunks(), chunk_bytes));
  }
  return absl::OkStatus();
}

// Answers of a message: a little less than a megabyte.
constexpr size_t kBlocksPerMessage = 100;
constexpr int64_t kBlockMessageOverhead = 32;  // tags, lengths and the block's number

// The bytes of the largest message with a block that the searcher may lack.
size_t LargestBlock(const EncryptedRows& rows, bool with_payloads) {
  size_t largest = 0;
  for (const auto& block : rows.blocks) {
    largest = std::max(largest, SentFormOf(*block).table_bytes);
    if (with_payloads) largest = std::max(largest, SentFormOf(*block).payload_bytes);
  }
  return largest;
}

// A block is one message, and gRPC ends a call that sends a longer message than the limit.
absl::Status CheckBlockSizes(const EncryptedRows& rows, bool with_payloads, const Limits& limits) {
  const int64_t max_bytes = MaxSentMessageBytes(limits);
  for (size_t i = 0; i < rows.blocks.size(); ++i) {
    const EncryptedBlock::SentForm& sent = SentFormOf(*rows.blocks[i]);
    const auto check = [&](absl::string_view what, size_t bytes,
                           absl::string_view remedy) -> absl::Status {
      if (static_cast<int64_t>(bytes) + kBlockMessageOverhead <= max_bytes) return absl::OkStatus();
      return absl::ResourceExhaustedError(
          absl::StrCat(what, " block ", i, " of the collection has ", bytes,
                       " bytes, but a message has at most ", max_bytes, ": ", remedy));
    };
    PM_RETURN_IF_ERROR(check("table", sent.table_bytes, "no search works"));
    if (!with_payloads) continue;
    PM_RETURN_IF_ERROR(check("payload", sent.payload_bytes, "search without payloads"));
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
                                call.limits().max_request_memory, "memory / 16"));
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

absl::Status SendScores(const ScorePass::Answer& answer, Call& call) {
  for (size_t query = 0; query < answer.scores.size(); ++query) {
    const absl::string_view scores = answer.scores[query];
    const size_t blocks = scores.size() / lattice::kAnswerBytes;
    for (size_t first = 0; first < blocks; first += kBlocksPerMessage) {
      v1::SearchEncryptedResponse response;
      response.mutable_scores()->set_query(static_cast<uint32_t>(query));
      response.mutable_scores()->set_first_block(static_cast<uint32_t>(first));
      response.mutable_scores()->set_answers(std::string(
          scores.substr(first * lattice::kAnswerBytes, kBlocksPerMessage * lattice::kAnswerBytes)));
      PM_RETURN_IF_ERROR(call.Write(response));
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
    const EncryptedBlock::SentForm& sent = SentFormOf(*block);
    header.mutable_table_digests()->append(sent.table_digest);
    if (with_payloads) header.mutable_payload_digests()->append(sent.payload_digest);
  }
  return response;
}

// The blocks whose digests are not among the known ones.
absl::Status SendBlocks(const EncryptedRows& rows, const v1::SearchEncryptedRequest& request,
                        Call& call) {
  for (const bool payloads : {false, true}) {
    if (payloads && !request.with_payloads()) break;
    const auto& prefixes = payloads ? request.known_payload_blocks() : request.known_blocks();
    std::vector<uint64_t> known(prefixes.begin(), prefixes.end());
    std::sort(known.begin(), known.end());
    for (size_t i = 0; i < rows.blocks.size(); ++i) {
      const EncryptedBlock& block = *rows.blocks[i];
      const EncryptedBlock::SentForm& form = SentFormOf(block);
      const uint64_t prefix = Sha256::Prefix(payloads ? form.payload_digest : form.table_digest);
      if (std::binary_search(known.begin(), known.end(), prefix)) continue;
      v1::SearchEncryptedResponse response;
      v1::RowBlock& sent =
          payloads ? *response.mutable_payload_block() : *response.mutable_table_block();
      sent.set_block(static_cast<uint32_t>(i));
      sent.set_content(payloads ? PayloadsOf(block) : TableOf(block));
      PM_RETURN_IF_ERROR(call.Write(response));
    }
  }
  return absl::OkStatus();
}

struct Keys {
  EvaluationKeyCache::Handle keys;  // null: the request has none, and none are cached
  int64_t uncached_bytes = 0;       // of keys that serve this search only, since the cache is full
};

// INVALID_ARGUMENT: coefficients that are too large, or keys of another delta.
absl::StatusOr<Keys> FindKeys(const Catalog& catalog, const v1::SearchEncryptedRequest& request,
                              Call& call) {
  Keys found = {.keys = catalog.evaluation_keys().Find(request.keys_digest())};
  call.metrics()->CountEvaluationKeys(found.keys != nullptr);
  if (found.keys == nullptr && !request.keys().empty()) {
    const auto delta = static_cast<int>(request.delta());
    found.keys = lattice::Evaluator::Best().ParseKeys(request.keys(), delta, Shake128);
    if (found.keys == nullptr) {
      return InvalidField(
          "keys", absl::StrCat("must hold numbers less than ", lattice::kModulus, ", but do not"));
    }
    if (!catalog.CacheEvaluationKeys(request.keys_digest(), found.keys, call.key().id)) {
      found.uncached_bytes = static_cast<int64_t>(lattice::EvaluationKeys::Memory(delta));
    }
  }
  if (found.keys == nullptr || found.keys->delta == static_cast<int>(request.delta())) return found;
  return InvalidField("delta", absl::StrCat("must be that of the keys, ", found.keys->delta,
                                            ", but is ", request.delta()));
}

// The rows that a front asks all shards for: of this version of the collection, as soon as it is
// here. ABORTED: these rows have changed since. UNAVAILABLE: the version does not come.
absl::StatusOr<std::shared_ptr<const EncryptedRows>> AwaitVersion(const Catalog& catalog,
                                                                  const std::string& collection,
                                                                  const SeenByFront& seen,
                                                                  const Call& call) {
  constexpr absl::Duration kMaxWait = absl::Seconds(10);
  const uint64_t version = seen.items_version;
  const Stopwatch waited;
  while (true) {
    const absl::StatusOr<CollectionView> view = catalog.Find(collection);
    std::shared_ptr<const EncryptedRows> rows;
    if (view.ok() && view->encrypted != nullptr) {
      PM_ASSIGN_OR_RETURN(rows, RequireRows(*view));
    }
    if (rows != nullptr && rows->collection == seen.key && rows->items_version >= version) {
      if (rows->changed_version <= version) return rows;
      return absl::AbortedError(absl::StrCat("version ", version, " of collection ", collection,
                                             " has been followed by version ",
                                             rows->changed_version, " here"));
    }
    PM_RETURN_IF_ERROR(CheckNotCancelled([&call] { return call.Cancelled(); }));
    if (waited.Elapsed() > kMaxWait) {
      return absl::UnavailableError(
          absl::StrCat("version ", version, " of collection ", collection, " is not here yet"));
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

absl::Status Search(const Catalog& catalog, const v1::SearchEncryptedRequest& request, Call& call) {
  std::shared_ptr<const EncryptedRows> rows;  // that a front asks for, or the present ones
  if (const std::optional<SeenByFront> seen = SeenBy(catalog, call); seen.has_value()) {
    PM_ASSIGN_OR_RETURN(rows, AwaitVersion(catalog, request.collection(), *seen, call));
  }
  PM_ASSIGN_OR_RETURN(const CollectionView view, FindForEncryptedSearch(catalog, request));
  const PublicParameters& parameters = view.published->parameters;
  const bool is_fixed = rows != nullptr;
  if (!is_fixed) {
    PM_ASSIGN_OR_RETURN(rows, RequireRows(view));
  }
  // A shard may have no item of a small collection.
  if (is_fixed && rows->items == 0) return call.Write(MakeHeader(*rows, request.with_payloads()));
  PM_RETURN_IF_ERROR(CheckBlockSizes(*rows, request.with_payloads(), call.limits()));
  PM_ASSIGN_OR_RETURN(const Keys keys, FindKeys(catalog, request, call));
  if (keys.keys == nullptr) {
    v1::SearchEncryptedResponse response;
    response.mutable_header()->set_keys_missing(true);
    return call.Write(response);
  }
  PM_RETURN_IF_ERROR(
      ReserveMemory(request, *rows, parameters.feature_dim, keys.uncached_bytes, call));
  PM_ASSIGN_OR_RETURN(auto queries, ParseQueries(request, parameters.feature_dim));
  call.CountFurtherQueries(request.queries_size() - 1);
  PM_ASSIGN_OR_RETURN(const ScorePass::Answer answer,
                      view.encrypted->pass().Score(
                          {call.key().id, keys.keys, std::move(queries), is_fixed ? rows : nullptr},
                          [&call] { return call.Cancelled(); }));
  const EncryptedRows& scored = *answer.rows;
  // The pass takes the rows of its start, which may be other ones.
  PM_RETURN_IF_ERROR(CheckHasItems(view.published->name, scored.items));
  PM_RETURN_IF_ERROR(CheckBlockSizes(scored, request.with_payloads(), call.limits()));
  call.AddRows(static_cast<uint64_t>(scored.rows) * static_cast<uint64_t>(request.queries_size()));
  PM_RETURN_IF_ERROR(call.Write(MakeHeader(scored, request.with_payloads())));
  PM_RETURN_IF_ERROR(SendBlocks(scored, request, call));
  return SendScores(answer, call);
}

}  // namespace

absl::StatusOr<CollectionView> FindForEncryptedSearch(const Catalog& catalog,
                                                      const v1::SearchEncryptedRequest& request) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindCollection(catalog, request.collection(), request.fingerprint()));
  const PublicParameters& parameters = view.published->parameters;
  PM_RETURN_IF_ERROR(CheckHasEncrypted(request.collection(), parameters));
  PM_RETURN_IF_ERROR(CheckHasItems(view));
  PM_RETURN_IF_ERROR(CheckEncryptedRequest(request, parameters));
  return view;
}

absl::Status CheckEncryptedRequest(const v1::SearchEncryptedRequest& request,
                                   const PublicParameters& parameters) {
  if (!lattice::IsDelta(request.delta())) {
    return InvalidField(
        "delta", absl::StrCat("must be one of ", absl::StrJoin(lattice::kDeltas, ", "), ", but is ",
                              request.delta()));
  }
  const auto delta = static_cast<int>(request.delta());
  PM_RETURN_IF_ERROR(CheckKeys(request, delta));
  PM_RETURN_IF_ERROR(CheckQueries(request, parameters.feature_dim, delta));
  PM_RETURN_IF_ERROR(CheckCount("known_blocks", request.known_blocks_size(), kMaxKnownBlocks));
  PM_RETURN_IF_ERROR(
      CheckCount("known_payload_blocks", request.known_payload_blocks_size(), kMaxKnownBlocks));
  if (request.with_payloads() || request.known_payload_blocks().empty()) return absl::OkStatus();
  return InvalidField("known_payload_blocks", "must not be given unless with_payloads is set");
}

void ServeEncrypted(const Catalog* catalog, Dispatcher* dispatcher) {
  dispatcher->Serve<v1::SearchEncryptedRequest>(
      "SearchEncrypted",
      [catalog](Call& call, const auto& request) { return Search(*catalog, request, call); });
}

}  // namespace privatemail::server
