#include "server/mpi/embed_job.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
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

absl::StatusOr<EmbeddedRows> Embed(const std::shared_ptr<const RowShare>& rows,
                                   const GalleryShare& share,
                                   const std::map<int32_t, int64_t>& rows_of_label,
                                   const StoredCollection& collection, PostgresStore* store) {
  std::optional<Progress> progress;
  StepObserver observer;
  if (rows->first_group() == 0) {
    progress.emplace(store, collection);
    observer = [&](double done, int steps) { return progress->Report(done, steps); };
  }
  return EmbedShare(collection.parameters, rows, share.points, share.labels, rows_of_label,
                    observer);
}

absl::StatusOr<EmbedOutcome> Save(PostgresStore* store, const StoredCollection& collection,
                                  Embedding embedding, const EmbeddedRows& rows) {
  PM_RETURN_IF_ERROR(CheckAnchorCoordinates(embedding.anchor_coordinates));
  embedding.items_version = collection.latest_version;
  embedding.collection = collection.key;
  embedding.objective = rows.objective;
  const absl::StatusOr<uint64_t> version = store->SaveEmbedding(collection.parameters, embedding);
  if (absl::IsNotFound(version.status())) return Deleted(collection.name);
  PM_RETURN_IF_ERROR(version.status());
  return EmbedOutcome{*version, collection.items, rows.plan.why};
}

// Between two calls of Agree no rank waits for another.
absl::StatusOr<EmbedOutcome> RunOnRank(const EmbedJob& job, const Ranks& ranks) {
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<PostgresStore> store,
                      PostgresStore::Open(job.conninfo, {.size = kSessions}));
  PM_ASSIGN_OR_RETURN(const StoredCollection collection, FindByName(store.get(), job.collection));
  PM_RETURN_IF_ERROR(CheckSame(ranks, collection));
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
                      Embed(rows, *share, rows_of_label, collection, store.get()));
  PM_RETURN_IF_ERROR(ranks.Agree(absl::OkStatus()));
  Embedding embedding = Collect(ranks, collection, *share, embedded.coordinates);
  if (ranks.rank() > 0) return EmbedOutcome{};
  return Save(store.get(), collection, std::move(embedding), embedded);
}

}  // namespace

absl::StatusOr<EmbedOutcome> Run(const EmbedJob& job, const Ranks& ranks) {
  absl::StatusOr<EmbedOutcome> outcome = RunOnRank(job, ranks);
  PM_RETURN_IF_ERROR(ranks.Agree(outcome.status()));
  return outcome;
}

}  // namespace privatemail::server
