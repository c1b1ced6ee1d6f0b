#include "server/mpi/embed_job.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"
#include "server/engine/embed.h"
#include "server/mpi/gallery_share.h"
#include "server/store/postgres/postgres_store.h"

namespace privatemail::server {
namespace {

// One session for reading and writing; the watch has its own.
constexpr int kSessions = 1;

absl::StatusOr<StoredCollection> FindByName(PostgresStore* store, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const std::vector<CollectionState> states, store->ListStates());
  const auto found = std::find_if(states.begin(), states.end(),
                                  [&](const CollectionState& one) { return one.name == name; });
  if (found != states.end()) return store->LoadCollection(found->uuid);
  return absl::NotFoundError(
      absl::StrCat("collection ", name, " does not exist in this PostgreSQL database"));
}

absl::Status Deleted(const std::string& name) {
  return absl::AbortedError(
      absl::StrCat("collection ", name, " was deleted while it was being embedded"));
}

// Checks that all ranks have read the same items.
absl::Status CheckSame(const Ranks& ranks, const StoredCollection& collection) {
  const std::string state = absl::StrCat(collection.parameters.collection_uuid, " ", collection.key,
                                         " ", collection.latest_version);
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> all, ranks.Exchange(state));
  if (std::count(all.begin(), all.end(), state) == ranks.size()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("collection ", collection.name,
                                         " was changed while the ranks began, expected the same "
                                         "items in each: run it again"));
}

// On rank 0: reports progress, and after each change in the store checks whether the collection was
// deleted.
class Progress {
 public:
  Progress(PostgresStore* store, const StoredCollection& collection)
      : name_(collection.name),
        watch_(
            store->Watch([this, store, key = collection.key] { return CheckDeleted(store, key); },
                         /*report=*/nullptr)) {}

  absl::Status Report(double done, int steps) {
    if (deleted_) return Deleted(name_);
    while (reported_ + 1 <= done) std::printf("step %d of %d\n", ++reported_, steps);
    std::fflush(stdout);
    return absl::OkStatus();
  }

 private:
  absl::Status CheckDeleted(PostgresStore* store, int64_t key) {
    PM_ASSIGN_OR_RETURN(const std::vector<CollectionState> states, store->ListStates());
    deleted_ = std::none_of(states.begin(), states.end(),
                            [&](const CollectionState& one) { return one.key == key; });
    return absl::OkStatus();
  }

  const std::string name_;
  int reported_ = 0;
  std::atomic<bool> deleted_ = false;
  std::unique_ptr<ChangeWatch> watch_;  // ends before what it writes to
};

absl::StatusOr<EmbeddedRows> Embed(const Ranks& ranks, const std::shared_ptr<const RowShare>& rows,
                                   const GalleryShare& share,
                                   const std::map<int32_t, int64_t>& rows_of_label,
                                   const StoredCollection& collection, PostgresStore* store) {
  std::optional<Progress> progress;
  StepObserver observer;
  if (rows->first_group() == 0) {
    progress.emplace(store, collection);
    observer = [&](double done, int steps) { return progress->Report(done, steps); };
  }
  return EmbedShare(collection.parameters, rows, ranks.Watched(share.points), share.labels,
                    rows_of_label, observer);
}

// The key of the embedding, the same in all ranks.
absl::StatusOr<int64_t> NewKey(PostgresStore* store, const Ranks& ranks) {
  std::string own;
  if (ranks.rank() == 0) {
    PM_ASSIGN_OR_RETURN(const int64_t key, store->NewEmbeddingKey());
    own = absl::StrCat(key);
  }
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> all, ranks.Exchange(own));
  int64_t key = 0;
  if (absl::SimpleAtoi(all.front(), &key)) return key;
  return absl::InternalError("the ranks have no key of the embedding in common");
}

// Runs on rank 0, while other ranks send their rows.
absl::StatusOr<uint64_t> Save(PostgresStore* store, const Ranks& ranks,
                              const StoredCollection& collection, const Embedding& embedding,
                              int64_t key, RowCollection* rows) {
  const auto next = [&]() -> absl::StatusOr<std::string> {
    std::string piece = rows->Next();
    // Before the commit, all ranks are known to live.
    if (piece.empty()) PM_RETURN_IF_ERROR(ranks.Agree(absl::OkStatus()));
    return piece;
  };
  const absl::StatusOr<uint64_t> version = store->SaveEncoded(
      collection.parameters, embedding, key, static_cast<int64_t>(collection.items), next);
  if (!version.ok()) {
    while (!rows->Next().empty()) {
    }
  }
  if (absl::IsNotFound(version.status())) return Deleted(collection.name);
  return version;
}

// In all ranks; returns the version in rank 0.
absl::StatusOr<uint64_t> CollectAndSave(PostgresStore* store, const Ranks& ranks,
                                        const StoredCollection& collection, const RowShare& rows,
                                        const GalleryShare& share, const EmbeddedRows& embedded) {
  Embedding embedding;
  embedding.items_version = collection.latest_version;
  embedding.collection = collection.key;
  embedding.objective = embedded.objective;
  PM_ASSIGN_OR_RETURN(embedding.anchor_coordinates,
                      CollectAnchors(ranks, collection, share, embedded.coordinates));
  PM_RETURN_IF_ERROR(CheckAnchorCoordinates(embedding.anchor_coordinates));
  PM_ASSIGN_OR_RETURN(const int64_t key, NewKey(store, ranks));
  RowCollection all(ranks, rows, share, embedded.coordinates, key);
  if (ranks.rank() == 0) return Save(store, ranks, collection, embedding, key, &all);
  all.SendAll();
  PM_RETURN_IF_ERROR(ranks.Agree(absl::OkStatus()));
  return uint64_t{0};
}

// Between two calls of Agree no rank waits for another.
absl::StatusOr<EmbedOutcome> RunOnRank(const EmbedJob& job, const Ranks& ranks) {
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<PostgresStore> store,
                      PostgresStore::Open(job.conninfo, {.size = kSessions}));
  PM_ASSIGN_OR_RETURN(const StoredCollection collection, FindByName(store.get(), job.collection));
  PM_RETURN_IF_ERROR(CheckSame(ranks, collection));
  PM_RETURN_IF_ERROR(CheckHasAnchors(collection.name, collection.parameters));
  if (collection.items == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("collection ", collection.name, " has no items to embed: ingest some first"));
  }
  const auto all_rows =
      static_cast<Eigen::Index>(collection.items) + collection.parameters.anchor_count;
  PM_RETURN_IF_ERROR(CheckShareable(PlanEmbedding(collection.parameters, all_rows)));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const RowShare> rows, ranks.Share(all_rows));
  absl::StatusOr<GalleryShare> share = ReadShare(store.get(), collection, *rows, job.directory);
  if (absl::IsNotFound(share.status())) return Deleted(collection.name);
  PM_RETURN_IF_ERROR(share.status());
  PM_ASSIGN_OR_RETURN(const auto rows_of_label, CountAllLabels(ranks, share->labels));
  PM_ASSIGN_OR_RETURN(const EmbeddedRows embedded,
                      Embed(ranks, rows, *share, rows_of_label, collection, store.get()));
  PM_ASSIGN_OR_RETURN(const uint64_t version,
                      CollectAndSave(store.get(), ranks, collection, *rows, *share, embedded));
  return EmbedOutcome{version, collection.items, embedded.plan.why};
}

}  // namespace

absl::StatusOr<EmbedOutcome> Run(const EmbedJob& job, const Ranks& ranks) {
  absl::StatusOr<EmbedOutcome> outcome = RunOnRank(job, ranks);
  PM_RETURN_IF_ERROR(ranks.Agree(outcome.status()));
  return outcome;
}

}  // namespace privatemail::server
