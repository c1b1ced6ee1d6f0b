// How a collection is built.
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/low_priority.h"
#include "common/base/status_macros.h"
#include "server/engine/gallery_file.h"
#include "server/engine/catalog.h"
#include "server/engine/publish.h"

namespace privatemail::server {
namespace {

absl::Status DeletedMeanwhile(absl::string_view name) {
  return absl::AbortedError(
      absl::StrCat("collection ", name, " was deleted while it was being built"));
}

}  // namespace

absl::Status CheckMaking(absl::string_view what, int64_t bytes, int64_t memory) {
  if (bytes <= memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("memory of ", what, " in bytes is at least ",
                                                   bytes, ", more than the limit of ", memory,
                                                   " (max_build_memory)"));
}

std::shared_ptr<const PublishedCollection> Publish(StoredCollection collection) {
  auto published = std::make_shared<PublishedCollection>();
  published->name = std::move(collection.name);
  published->fingerprint = Fingerprint(collection.parameters);
  published->parameters = std::move(collection.parameters);
  published->anchors = std::move(collection.anchors);
  return published;
}

std::shared_ptr<const Retriever> MakeRetriever(const PublishedCollection& published,
                                               Embedding embedding, const IndexOptions& index) {
  return std::make_shared<const Retriever>(published.parameters, published.anchors.labels,
                                           std::move(embedding), index);
}

void Catalog::Install(std::shared_ptr<const Retriever> retriever, const Deletion& deleted,
                      const Gone& gone, Entry* entry) {
  CollectionView& view = entry->view;
  if (view.retriever != nullptr && view.retriever->version() >= retriever->version()) return;
  const uint64_t items_version = retriever->items_version();
  view.retriever = std::move(retriever);
  view.hidden = nullptr;
  Hide(deleted.ids, entry);
  for (const Deletion& deletion : entry->deletions) {
    // The gallery of an earlier version still has them.
    if (deletion.latest_version > items_version) Hide(deletion.ids, entry);
  }
  // For cells that are being made of what was stored before.
  if (entry->loads > 0 && !deleted.ids.empty()) entry->deletions.push_back(deleted);
  if (view.cells == nullptr) return;
  // Others seldom come in between.
  Hide(view.cells == gone.cells ? gone.ids : IdsNotIn(*view.retriever, *view.cells), entry);
}

void Catalog::EndLoad(Entry* entry) {
  if (--entry->loads == 0) entry->deletions.clear();
}

void Catalog::SetOptions(const CatalogOptions& options) {
  const std::lock_guard<std::mutex> guard(mutex_);
  options_ = options;
}

CatalogOptions Catalog::options() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return options_;
}

bool Catalog::IsDeleted(const Entry& entry) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return entry.deleted;
}

absl::StatusOr<std::shared_ptr<Catalog::Entry>> Catalog::BeginBuild(absl::string_view name) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(std::shared_ptr<Entry> entry, FindEntry(name));
  if (entry->building) {
    return absl::AbortedError(
        absl::StrCat("collection ", name, " is being built already: wait for that build to end"));
  }
  if (entry->view.items == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "collection ", name, " has no items: run `privatemail ingest ", name, "` first"));
  }
  entry->building = true;
  ++entry->loads;
  return entry;
}

absl::StatusOr<Embedding> Catalog::EmbedStored(const CollectionView& view,
                                               const StepObserver& observer, int64_t memory) {
  const PublicParameters& parameters = view.published->parameters;
  const Anchors& anchors = view.published->anchors;
  const ProductObserver go_on =
      OncePerSecond([&](double) { return observer(0, parameters.settings.steps); });
  const int64_t iterates = view.build_memory(CollectionView::Features::kInFile);
  const Store::LoadWatch watch = [&](int64_t bytes) -> absl::Status {
    PM_RETURN_IF_ERROR(go_on(0));
    return CheckMaking("this build", iterates + bytes, memory);
  };
  if (view.build_memory(CollectionView::Features::kInMemory) <= memory) {
    PM_ASSIGN_OR_RETURN(Gallery gallery, store_->LoadGallery(parameters, watch));
    return Embed(parameters, anchors, std::move(gallery), observer);
  }
  PM_ASSIGN_OR_RETURN(FiledGallery gallery,
                      ReadIntoFile(*store_, parameters, anchors, directory_, watch));
  return Embed(parameters, anchors, std::move(gallery.columns), std::move(gallery.points),
               observer);
}

absl::Status Catalog::RunBuild(const std::shared_ptr<Entry>& entry, const StepObserver& observer,
                               int64_t memory) {
  const CollectionView view = [&] {
    const std::lock_guard<std::mutex> guard(mutex_);
    return entry->view;
  }();
  const PublishedCollection& published = *view.published;
  const StepObserver watch = [&](double done, int steps) -> absl::Status {
    if (IsDeleted(*entry)) return DeletedMeanwhile(published.name);
    return observer ? observer(done, steps) : absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(watch(0, published.parameters.settings.steps));
  absl::StatusOr<Embedding> embedding;
  AtLowPriority([&] { embedding = EmbedStored(view, watch, memory); });  // searches come first
  if (absl::IsNotFound(embedding.status())) return DeletedMeanwhile(published.name);
  PM_RETURN_IF_ERROR(embedding.status());
  const absl::StatusOr<uint64_t> version = store_->SaveEmbedding(published.parameters, *embedding);
  if (absl::IsNotFound(version.status())) return DeletedMeanwhile(published.name);
  PM_RETURN_IF_ERROR(version.status());
  embedding->version = *version;
  // It is stored: should the rest fail, it is taken over as another daemon's would be.
  absl::Cleanup take_over = [&] {
    const std::lock_guard<std::mutex> guard(mutex_);
    entry->outdated = true;
  };
  auto deleted = store_->DeletedSince(published.parameters, *version, /*after=*/0);
  if (absl::IsNotFound(deleted.status())) return DeletedMeanwhile(published.name);
  PM_RETURN_IF_ERROR(deleted.status());
  const std::shared_ptr<const Retriever> retriever =
      MakeRetriever(published, *std::move(embedding), options().index);
  const Gone gone = FindGone(*retriever, *entry);
  PM_ASSIGN_OR_RETURN(const uint64_t told, VersionNow(published));
  std::shared_ptr<const Retriever> former;  // freed after the lock: it is large
  const std::lock_guard<std::mutex> guard(mutex_);
  former = entry->view.retriever;
  if (entry->deleted) return DeletedMeanwhile(published.name);
  Install(retriever, {told, deleted->value_or(std::vector<std::string>())}, gone, entry.get());
  MakeLater(entry);
  std::move(take_over).Cancel();
  return absl::OkStatus();
}

absl::StatusOr<CollectionView> Catalog::Build(absl::string_view name, const StepObserver& observer,
                                              int64_t memory) {
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, BeginBuild(name));
  bool outdated = false;
  // Also when memory runs out in it.
  auto end = absl::MakeCleanup([&] {
    const std::lock_guard<std::mutex> guard(mutex_);
    entry->building = false;
    EndLoad(entry.get());
    outdated = std::exchange(entry->outdated, false);
  });
  const absl::Status outcome = RunBuild(entry, observer, memory);
  std::move(end).Invoke();
  // Should the store be away, its watch will ask for the same once it is back.
  if (outdated) Refresh().IgnoreError();
  PM_RETURN_IF_ERROR(outcome);
  const std::lock_guard<std::mutex> guard(mutex_);
  return entry->view;
}

}  // namespace privatemail::server
