#include "server/engine/collection_builder.h"

#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/background_queue.h"
#include "common/base/status_macros.h"
#include "server/engine/point_file.h"

namespace privatemail::server {
namespace {

absl::Status DeletedDuringBuild(absl::string_view name) {
  return absl::AbortedError(
      absl::StrCat("collection ", name, " was deleted while it was being built"));
}

}  // namespace

absl::StatusOr<Embedding> CollectionBuilder::EmbedStored(const CollectionView& view,
                                                         const StepObserver& observer,
                                                         int64_t memory) {
  const PublicParameters& parameters = view.published->parameters;
  const Anchors& anchors = view.published->anchors;
  const ProductObserver poll =
      OncePerSecond([&](double) { return observer(0, parameters.settings.steps); });
  const int64_t iterate_bytes = view.build_memory(CollectionView::Features::kInFile);
  const Store::LoadWatch watch = [&](int64_t bytes) -> absl::Status {
    PM_RETURN_IF_ERROR(poll(0));
    return CheckBuildMemory("this build", iterate_bytes + bytes, memory);
  };
  if (view.build_memory(CollectionView::Features::kInMemory) <= memory) {
    PM_ASSIGN_OR_RETURN(Gallery gallery, store_->LoadGallery(parameters, watch));
    return Embed(parameters, anchors, std::move(gallery), observer);
  }
  PM_ASSIGN_OR_RETURN(SpooledGallery gallery,
                      SpoolGallery(*store_, parameters, anchors, directory_, watch));
  return Embed(parameters, anchors, std::move(gallery.columns), std::move(gallery.points),
               observer);
}

absl::Status CollectionBuilder::Run(const CollectionRegistry::EntryPtr& entry,
                                    const StepObserver& observer, int64_t memory) {
  const CollectionView view = registry_->ViewOf(*entry);
  const PublishedCollection& published = *view.published;
  const StepObserver watch = [&](double done, int steps) -> absl::Status {
    if (registry_->IsRemoved(*entry)) return DeletedDuringBuild(published.name);
    return observer ? observer(done, steps) : absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(watch(0, published.parameters.settings.steps));
  absl::StatusOr<Embedding> embedding;
  RunAtLowPriority([&] { embedding = EmbedStored(view, watch, memory); });  // searches come first
  if (absl::IsNotFound(embedding.status())) return DeletedDuringBuild(published.name);
  PM_RETURN_IF_ERROR(embedding.status());
  const absl::StatusOr<uint64_t> version = store_->SaveEmbedding(published.parameters, *embedding);
  if (absl::IsNotFound(version.status())) return DeletedDuringBuild(published.name);
  PM_RETURN_IF_ERROR(version.status());
  embedding->version = *version;
  // It is stored. If the rest fails, the Refresh after the build adopts it.
  absl::Cleanup refresh = [&] { registry_->MarkOutdated(entry.get()); };
  auto deleted = store_->DeletedSince(published.parameters, *version, /*after=*/0);
  if (absl::IsNotFound(deleted.status())) return DeletedDuringBuild(published.name);
  PM_RETURN_IF_ERROR(deleted.status());
  PM_ASSIGN_OR_RETURN(const bool installed,
                      synchronizer_->Install(entry, *std::move(embedding),
                                             deleted->value_or(std::vector<std::string>())));
  if (!installed) return DeletedDuringBuild(published.name);
  std::move(refresh).Cancel();
  return absl::OkStatus();
}

absl::StatusOr<CollectionView> CollectionBuilder::Build(absl::string_view name,
                                                        const StepObserver& observer,
                                                        int64_t memory) {
  PM_ASSIGN_OR_RETURN(const CollectionRegistry::EntryPtr entry, registry_->BeginBuild(name));
  bool outdated = false;
  // Also after an exception, such as std::bad_alloc.
  auto end = absl::MakeCleanup([&] { outdated = registry_->EndBuild(entry.get()); });
  const absl::Status outcome = Run(entry, observer, memory);
  std::move(end).Invoke();
  // If the store is unavailable now, its watch refreshes later.
  if (outdated) synchronizer_->Refresh().IgnoreError();
  PM_RETURN_IF_ERROR(outcome);
  return registry_->ViewOf(*entry);
}

}  // namespace privatemail::server
