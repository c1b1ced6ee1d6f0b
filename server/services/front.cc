// The RPCs of a front: it has no items in memory and merges what the shards answer.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/stopwatch.h"
#include "common/embedding/offered_schemes.h"
#include "common/lattice/scores.h"
#include "common/rpc/status.h"
#include "privatemail/v1/collections.pb.h"
#include "privatemail/v1/retrieval.pb.h"
#include "server/services/collection_state.h"
#include "server/services/response_encoders.h"
#include "server/services/services.h"
#include "server/services/shards.h"

namespace privatemail::server {
namespace {

constexpr size_t kBlockDigestBytes = 32;

using Parts = std::vector<v1::GetCollectionResponse>;

template <typename Value>
Value Sum(const Parts& parts, Value (v1::GetCollectionResponse::*field)() const) {
  Value sum = 0;
  for (const auto& part : parts) sum += (part.*field)();
  return sum;
}

uint64_t Least(const Parts& parts, uint64_t (v1::GetCollectionResponse::*field)() const) {
  uint64_t least = (parts.front().*field)();
  for (const auto& part : parts) least = std::min(least, (part.*field)());
  return least;
}

// The shard with the highest rank speaks for the cells of all.
int CellsRank(const v1::GetCollectionResponse& part) {
  switch (part.cells_status()) {
    case v1::CELLS_STATUS_READY:  // perhaps of an earlier build, and the present one has failed
      return part.cells() == ReadyCells(part.cells_items()) ? 0 : 1;
    case v1::CELLS_STATUS_FAILED:
      return 3;
    default:
      return 2;
  }
}

// Adds what the shards have of the collection to what the store says.
void AddParts(const Parts& parts, v1::GetCollectionResponse* answer) {
  const v1::GetCollectionResponse& first = parts.front();
  answer->set_embedding_version(Least(parts, &v1::GetCollectionResponse::embedding_version));
  answer->set_changes_since_embedding(0);
  answer->set_index(first.index());
  for (const v1::GetCollectionResponse& part : parts) {
    answer->set_changes_since_embedding(
        std::max(answer->changes_since_embedding(), part.changes_since_embedding()));
    if (part.has_build_share()) {
      answer->set_build_share(
          std::min(part.build_share(), answer->has_build_share() ? answer->build_share() : 1));
    }
    if (part.has_cells_share()) {
      answer->set_cells_share(
          std::min(part.cells_share(), answer->has_cells_share() ? answer->cells_share() : 1));
    }
    if (!part.has_encrypted()) continue;
    v1::EncryptedStatus& encrypted = *answer->mutable_encrypted();
    encrypted.set_rows(encrypted.rows() + part.encrypted().rows());
    encrypted.set_table_bytes(encrypted.table_bytes() + part.encrypted().table_bytes());
    encrypted.set_payload_bytes(encrypted.payload_bytes() + part.encrypted().payload_bytes());
  }
  if (answer->encrypted().rows() > 0) {
    answer->mutable_encrypted()->set_delta(static_cast<uint32_t>(
        lattice::ChooseDelta(static_cast<int64_t>(answer->encrypted().rows()),
                             static_cast<int64_t>(answer->parameters().feature_dim()))));
  }
  if (answer->embedding_version() == 0) return;
  answer->set_embedded_items(Sum(parts, &v1::GetCollectionResponse::embedded_items));
  const v1::GetCollectionResponse& behind =
      *std::max_element(parts.begin(), parts.end(),
                        [](const auto& a, const auto& b) { return CellsRank(a) < CellsRank(b); });
  answer->set_cells_status(behind.cells_status());
  answer->set_cells_items(Sum(parts, &v1::GetCollectionResponse::cells_items));
  absl::string_view rest = behind.cells();
  const bool ready = absl::ConsumePrefix(&rest, ReadyCells(behind.cells_items()));
  answer->set_cells(ready ? absl::StrCat(ReadyCells(answer->cells_items()), rest) : behind.cells());
}

absl::Status GetCollection(const Catalog& catalog, Shards& shards,
                           const v1::GetCollectionRequest& request, Call& call,
                           v1::GetCollectionResponse* answer) {
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog.Find(request.collection()));
  v1::GetCollectionRequest asked = request;
  asked.clear_with_quality();
  if (!call.key().Has(kWriteScope | kAdminScope)) asked.clear_with_changes();
  PM_ASSIGN_OR_RETURN(Parts parts, shards.AskOne<v1::GetCollectionResponse>(call, asked));
  DescribeCollection(view, answer);
  AddParts(parts, answer);
  answer->set_max_k(static_cast<uint32_t>(call.limits().max_k));
  answer->set_without_quality(true);
  std::map<std::string, int64_t> unknown;  // in how many shards
  for (v1::GetCollectionResponse& part : parts) {
    answer->set_max_k(std::min(answer->max_k(), part.max_k()));
    for (std::string& path : *part.mutable_unknown_paths()) ++unknown[std::move(path)];
    if (!part.has_changes()) continue;
    v1::ItemChanges& changes = *answer->mutable_changes();
    changes.set_inserted(changes.inserted() + part.changes().inserted());
    changes.set_updated(changes.updated() + part.changes().updated());
    // Every shard knows the tombstones of all.
    changes.set_deleted(std::max(changes.deleted(), part.changes().deleted()));
  }
  for (const auto& [path, count] : unknown) {
    if (count == shards.size()) answer->add_unknown_paths(path);
  }
  return absl::OkStatus();
}

absl::Status List(const Catalog& catalog, Shards& shards, const v1::ListCollectionsRequest& request,
                  Call& call, v1::ListCollectionsResponse* answer) {
  PM_ASSIGN_OR_RETURN(auto lists, shards.AskOne<v1::ListCollectionsResponse>(call, request));
  std::map<std::string, Parts> parts;
  for (v1::ListCollectionsResponse& list : lists) {
    for (v1::GetCollectionResponse& part : *list.mutable_collections()) {
      parts[part.name()].push_back(std::move(part));
    }
  }
  for (const CollectionView& view : catalog.List()) {
    const std::string& name = view.published->name;
    if (!call.key().Covers(name)) continue;
    if (std::ssize(parts[name]) != shards.size()) {
      return absl::UnavailableError(
          absl::StrCat("not all shards know collection ", name, " yet: try again"));
    }
    DescribeCollection(view, answer->add_collections());
    AddParts(parts[name], answer->mutable_collections(answer->collections_size() - 1));
    PM_RETURN_IF_ERROR(call.CheckAnswerSize(answer->ByteSizeLong(), "get collections one by one"));
  }
  call.AddRows(static_cast<uint64_t>(answer->collections_size()));
  return absl::OkStatus();
}

// Returns what the shards have built together, without the collection, whose `parts` it sets.
absl::StatusOr<v1::BuildEmbeddingResponse> BuildAll(const Catalog& catalog, Shards& shards,
                                                    const v1::BuildEmbeddingRequest& request,
                                                    const ShardCall& call, Parts* parts) {
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog.Find(request.collection()));
  PM_RETURN_IF_ERROR(CheckHasItems(view));
  PM_ASSIGN_OR_RETURN(const uint64_t version, catalog.NewEmbeddingVersion());
  PM_ASSIGN_OR_RETURN(const auto streams, shards.Ask<v1::BuildEmbeddingResponse>(
                                              call, request, shards.size(), absl::StrCat(version)));
  // Automatic builds accept what the last one accepted.
  view.collection->accepts_labels() = request.accept_misalignment();
  v1::BuildEmbeddingResponse built;
  for (const auto& stream : streams) {
    if (stream.empty()) return absl::InternalError("a shard must say what it has built");
    const v1::BuildEmbeddingResponse& last = stream.back();
    const double objective = built.objective() + last.objective();
    const uint64_t rows = built.rows() + last.rows();
    const double seconds = std::max(built.elapsed_seconds(), last.elapsed_seconds());
    parts->push_back(last.collection());
    built = last;
    built.set_objective(objective);
    built.set_rows(rows);
    built.set_elapsed_seconds(seconds);
  }
  built.clear_collection();
  return built;
}

absl::Status Build(const Catalog& catalog, Shards& shards, const v1::BuildEmbeddingRequest& request,
                   Call& call) {
  Parts parts;
  PM_ASSIGN_OR_RETURN(v1::BuildEmbeddingResponse built,
                      BuildAll(catalog, shards, request, call, &parts));
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog.Find(request.collection()));
  CollectionToProto(view, built.mutable_collection());
  AddParts(parts, built.mutable_collection());
  call.AddRows(built.collection().embedded_items());
  return call.Write(built);
}

// Calls `ask` until it returns another status than ABORTED, which says that the shards have not yet
// come to one version. UNAVAILABLE: they did not within kMaxWait.
absl::Status AskForOneVersion(Call& call, absl::FunctionRef<absl::Status()> ask) {
  constexpr absl::Duration kMaxWait = absl::Seconds(20), kMaxPause = absl::Milliseconds(100);
  const Stopwatch waited;
  for (absl::Duration pause = absl::Milliseconds(1);; pause = std::min(2 * pause, kMaxPause)) {
    const absl::Status status = ask();
    if (!absl::IsAborted(status)) return status;
    if (call.Cancelled()) return absl::CancelledError("the caller is gone");
    if (waited.Elapsed() > kMaxWait) return absl::UnavailableError(status.message());
    call.ReduceSearchMemoryTo(0);
    absl::SleepFor(pause);
  }
}

// The metadata of searches, which shards answer without the items that were deleted before.
// ABORTED: the collection was created here, and the store has not reported it yet.
absl::StatusOr<std::string> ShownVersion(const CollectionView& view) {
  const int64_t key = view.collection->key();
  if (key != 0) return absl::StrCat(key, ":", view.latest_version);
  return absl::AbortedError(
      absl::StrCat("collection ", view.published->name, " has not been read back from the store"));
}

// Calls `ask`, which returns the versions of the embeddings that the shards have answered from,
// until they are the same.
//   asked: what `ask` sends. If some embeddings are of earlier builds than others, it asks for the
//          latest from then on.
// Statuses of AskForOneVersion.
template <typename Request>
absl::Status AskForOneEmbedding(
    const CollectionView& view, Call& call, Request* asked,
    absl::FunctionRef<absl::StatusOr<std::set<uint64_t>>(const std::string& shown)> ask) {
  const uint64_t accepted = asked->embedding_version();  // by the caller
  return AskForOneVersion(call, [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(const std::string shown, ShownVersion(view));
    const absl::StatusOr<std::set<uint64_t>> versions = ask(shown);
    // A shard that loads the latest embedding refuses to answer from its former one.
    if (absl::IsUnavailable(versions.status()) && asked->embedding_version() > accepted) {
      return absl::AbortedError(versions.status().message());
    }
    PM_RETURN_IF_ERROR(versions.status());
    if (versions->size() == 1) return absl::OkStatus();
    const uint64_t latest = *versions->rbegin();
    asked->set_embedding_version(latest);
    return absl::AbortedError(absl::StrCat("not all shards have version ", latest,
                                           " of the embedding of collection ", asked->collection(),
                                           ": send it again, or build the collection again"));
  });
}

// Sets what the shards answer, merged, with all but the slots parsed. Returns the versions of their
// embeddings.
absl::StatusOr<std::set<uint64_t>> AskAndMerge(Shards& shards, const v1::RetrieveRequest& request,
                                               const std::string& shown, Call& call,
                                               MergedSlots* merged, v1::RetrieveResponse* rest) {
  PM_ASSIGN_OR_RETURN(const auto answers, shards.AskBytes(call, request, shards.size(), shown));
  std::vector<grpc::Slice> slices(answers.size());
  std::vector<absl::string_view> bytes;
  for (size_t shard = 0; shard < answers.size(); ++shard) {
    if (answers[shard].size() != 1) {
      return absl::InternalError("a shard must answer with one message");
    }
    PM_RETURN_IF_ERROR(FromGrpc(answers[shard].front().DumpToSingleSlice(&slices[shard])));
    bytes.emplace_back(reinterpret_cast<const char*>(slices[shard].begin()), slices[shard].size());
  }
  PM_ASSIGN_OR_RETURN(*merged, MergeSlots(bytes, request.k()));
  std::set<uint64_t> versions;
  for (size_t shard = 0; shard < answers.size(); ++shard) {
    v1::RetrieveResponse part;
    const absl::string_view encoded = merged->rests[shard];
    if (!part.ParseFromArray(encoded.data(), static_cast<int>(encoded.size())) ||
        part.slots_size() > 0) {
      return absl::InternalError("the answer of a shard cannot be read");
    }
    if (shard == 0) *rest = part;  // the alignment is that of the first shard
    versions.insert(part.embedding_version());
    rest->set_server_seconds(std::max(rest->server_seconds(), part.server_seconds()));
    rest->set_changes_since_embedding(
        std::max(rest->changes_since_embedding(), part.changes_since_embedding()));
  }
  merged->rests.clear();  // they point to what the shards sent
  if (versions.size() > 1) *merged = {};
  return versions;
}

absl::Status Retrieve(const Catalog& catalog, Shards& shards, const v1::RetrieveRequest& request,
                      Call& call) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindCollection(catalog, request.collection(), request.fingerprint()));
  PM_RETURN_IF_ERROR(CheckHasClasses(request.collection(), view.published->parameters));
  PM_RETURN_IF_ERROR(CheckLimit("k", request.k(), call.limits().max_k, "max_k"));
  MergedSlots merged;
  v1::RetrieveResponse rest;
  v1::RetrieveRequest asked = request;
  PM_RETURN_IF_ERROR(AskForOneEmbedding(view, call, &asked, [&](const std::string& shown) {
    return AskAndMerge(shards, asked, shown, call, &merged, &rest);
  }));
  rest.set_truncated(merged.matches < merged.slots * request.k());
  rest.AppendToString(&merged.bytes);
  PM_RETURN_IF_ERROR(
      call.CheckAnswerSize(merged.bytes.size(), "ask for a smaller k or for no payloads"));
  call.AddRows(merged.matches);
  call.SetAnswer(std::move(merged.bytes));
  return absl::OkStatus();
}

// Every shard sends an equal part of each cell's list: the items of the part that are likeliest to
// be wanted, which are about those of the whole list, since items are divided by hash.
absl::Status RetrieveCells(const Catalog& catalog, Shards& shards,
                           const v1::RetrieveCellsRequest& request, Call& call) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindCollection(catalog, request.collection(), request.fingerprint()));
  PM_RETURN_IF_ERROR(CheckHasCells(request.collection(), view.published->parameters));
  const int64_t cells = std::max(1, request.cells_size());
  const int64_t of_shard = (request.items() + cells - 1) / cells / shards.size();
  if (of_shard == 0) {
    return InvalidField(
        "items", absl::StrCat("must be more than ", cells * (shards.size() - 1),
                              ", at least one of each cell and shard, but is ", request.items()));
  }
  v1::RetrieveCellsRequest asked = request;
  asked.set_items(static_cast<uint32_t>(of_shard * cells));
  std::vector<std::vector<v1::RetrieveCellsResponse>> streams;
  uint64_t items_version = 0;  // the least of the shards, which have not read at one moment
  PM_RETURN_IF_ERROR(AskForOneEmbedding(
      view, call, &asked, [&](const std::string& shown) -> absl::StatusOr<std::set<uint64_t>> {
        PM_ASSIGN_OR_RETURN(
            streams, shards.Ask<v1::RetrieveCellsResponse>(call, asked, shards.size(), shown));
        std::set<uint64_t> items_versions, versions;
        for (const auto& stream : streams) {
          if (stream.empty()) {
            return absl::InternalError("the answer of a shard must have a message");
          }
          items_versions.insert(stream.front().items_version());
          versions.insert(stream.front().embedding_version());
        }
        items_version = *items_versions.begin();
        if (versions.size() > 1) streams.clear();
        return versions;
      }));
  bool is_empty = true;
  for (auto& stream : streams) {
    for (v1::RetrieveCellsResponse& message : stream) {
      if (message.ids().empty()) continue;
      is_empty = false;
      message.set_items_version(items_version);
      call.AddRows(static_cast<uint64_t>(message.ids_size()));
      PM_RETURN_IF_ERROR(call.Write(message));
    }
  }
  if (!is_empty) return absl::OkStatus();
  streams.front().front().set_items_version(items_version);
  return call.Write(streams.front().front());
}

using EncryptedParts = std::vector<std::vector<v1::SearchEncryptedResponse>>;

absl::Status SendParts(EncryptedParts parts, const v1::SearchEncryptedRequest& request,
                       uint64_t version, Call& call) {
  v1::SearchEncryptedResponse merged;
  v1::EncryptedSearchHeader& header = *merged.mutable_header();
  header.set_items_version(version);
  std::vector<uint32_t> first_block;  // of each shard
  for (const auto& part : parts) {
    if (part.empty() || !part.front().has_header()) {
      return absl::InternalError("the answer of a shard must begin with its header");
    }
    const v1::EncryptedSearchHeader& shard = part.front().header();
    if (shard.keys_missing()) return call.Write(part.front());
    first_block.push_back(static_cast<uint32_t>(header.table_digests().size() / kBlockDigestBytes));
    header.set_items(header.items() + shard.items());
    header.mutable_table_digests()->append(shard.table_digests());
    header.mutable_payload_digests()->append(shard.payload_digests());
  }
  PM_RETURN_IF_ERROR(CheckHasItems(request.collection(), static_cast<int64_t>(header.items())));
  call.AddRows(header.table_digests().size() / kBlockDigestBytes * lattice::kDegree *
               static_cast<uint64_t>(request.queries_size()));
  PM_RETURN_IF_ERROR(call.Write(merged));
  std::vector<size_t> next(parts.size(), 1);
  // Sends the next messages of every shard as long as they belong to the step.
  const auto send = [&](auto belongs) -> absl::Status {
    for (size_t shard = 0; shard < parts.size(); ++shard) {
      for (; next[shard] < parts[shard].size(); ++next[shard]) {
        v1::SearchEncryptedResponse& message = parts[shard][next[shard]];
        if (!belongs(message)) break;
        if (message.has_table_block()) {
          message.mutable_table_block()->set_block(message.table_block().block() +
                                                   first_block[shard]);
        } else if (message.has_payload_block()) {
          message.mutable_payload_block()->set_block(message.payload_block().block() +
                                                     first_block[shard]);
        } else {
          message.mutable_scores()->set_first_block(message.scores().first_block() +
                                                    first_block[shard]);
        }
        PM_RETURN_IF_ERROR(call.Write(message));
        message.Clear();
      }
    }
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(send([](const auto& message) { return message.has_table_block(); }));
  PM_RETURN_IF_ERROR(send([](const auto& message) { return message.has_payload_block(); }));
  for (int query = 0; query < request.queries_size(); ++query) {
    PM_RETURN_IF_ERROR(send([&](const auto& message) {
      return message.has_scores() && message.scores().query() == static_cast<uint32_t>(query);
    }));
  }
  return absl::OkStatus();
}

absl::Status Search(const Catalog& catalog, Shards& shards,
                    const v1::SearchEncryptedRequest& request, Call& call) {
  PM_RETURN_IF_ERROR(FindForEncryptedSearch(catalog, request).status());
  call.CountFurtherQueries(request.queries_size() - 1);
  // The present version or a later one. Shards refuse a version that they have left behind before
  // they compute anything.
  uint64_t version = 0;
  EncryptedParts parts;
  PM_RETURN_IF_ERROR(AskForOneVersion(call, [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(const CollectionView view, catalog.Find(request.collection()));
    version = view.latest_version;
    PM_ASSIGN_OR_RETURN(const std::string shown, ShownVersion(view));
    PM_ASSIGN_OR_RETURN(
        parts, shards.Ask<v1::SearchEncryptedResponse>(call, request, shards.size(), shown));
    return absl::OkStatus();
  }));
  return SendParts(std::move(parts), request, version, call);
}

absl::Status GetAnchors(const Catalog& catalog, Shards& shards,
                        const v1::GetAnchorsRequest& request, Call& call) {
  PM_ASSIGN_OR_RETURN(const CollectionView view,
                      FindCollection(catalog, request.collection(), request.fingerprint()));
  PM_RETURN_IF_ERROR(CheckHasAnchors(request.collection(), view.published->parameters));
  // The alignment of an answer is that of the first shard, too.
  PM_ASSIGN_OR_RETURN(const auto streams,
                      shards.Ask<v1::GetAnchorsResponse>(call, request, /*count=*/1));
  for (const v1::GetAnchorsResponse& message : streams.front()) {
    PM_RETURN_IF_ERROR(call.Write(message));
  }
  return absl::OkStatus();
}

std::string PathOf(const char* method) {
  return absl::StrCat("/privatemail.v1.CollectionsService/", method);
}

}  // namespace

std::optional<std::map<std::string, EmbeddedItems>> EmbeddedByShards(
    Shards* shards, const std::function<bool()>& cancelled) {
  std::map<std::string, EmbeddedItems> embedded;
  const auto lists = shards->AskOne<v1::ListCollectionsResponse>(
      {PathOf("ListCollections"), cancelled}, v1::ListCollectionsRequest());
  if (!lists.ok()) return std::nullopt;
  for (const v1::ListCollectionsResponse& list : *lists) {
    for (const v1::GetCollectionResponse& part : list.collections()) {
      if (part.embedding_version() == 0) continue;
      EmbeddedItems& all = embedded[part.name()];
      all.items += part.embedded_items();
      all.changes = std::max(all.changes, part.changes_since_embedding());
    }
  }
  return embedded;
}

absl::Status BuildShards(const Catalog* catalog, Shards* shards, const std::string& name,
                         const std::function<bool()>& cancelled) {
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog->Find(name));
  v1::BuildEmbeddingRequest request;
  request.set_collection(name);
  request.set_accept_misalignment(view.collection->accepts_labels());
  Parts parts;
  return BuildAll(*catalog, *shards, request, {PathOf("BuildEmbedding"), cancelled}, &parts)
      .status();
}

void ServeFront(const Catalog* catalog, Shards* shards, Dispatcher* dispatcher) {
  dispatcher->ServeUnary<v1::GetCollectionRequest, v1::GetCollectionResponse>(
      "GetCollection", [=](Call& call, const auto& request, auto* answer) {
        return GetCollection(*catalog, *shards, request, call, answer);
      });
  dispatcher->ServeUnary<v1::ListCollectionsRequest, v1::ListCollectionsResponse>(
      "ListCollections", [=](Call& call, const auto& request, auto* answer) {
        return List(*catalog, *shards, request, call, answer);
      });
  dispatcher->Serve<v1::BuildEmbeddingRequest>(
      "BuildEmbedding",
      [=](Call& call, const auto& request) { return Build(*catalog, *shards, request, call); });
  dispatcher->Serve<v1::SearchEncryptedRequest>(
      "SearchEncrypted",
      [=](Call& call, const auto& request) { return Search(*catalog, *shards, request, call); });
  dispatcher->Serve<v1::GetAnchorsRequest>("GetAnchors", [=](Call& call, const auto& request) {
    return GetAnchors(*catalog, *shards, request, call);
  });
  dispatcher->Serve<v1::RetrieveRequest>("Retrieve", [=](Call& call, const auto& request) {
    return Retrieve(*catalog, *shards, request, call);
  });
  dispatcher->Serve<v1::RetrieveCellsRequest>(
      "RetrieveCells", [=](Call& call, const auto& request) {
        return RetrieveCells(*catalog, *shards, request, call);
      });
}

}  // namespace privatemail::server
