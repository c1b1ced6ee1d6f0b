#include "server/engine/catalog.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/embedding/embed.h"
#include "server/store/uuid.h"

namespace privatemail {
namespace {

constexpr size_t kMaxNameBytes = 64;

absl::Status CheckName(absl::string_view name) {
  bool valid = !name.empty() && name.size() <= kMaxNameBytes && absl::ascii_isalnum(name[0]);
  for (const char c : name) {
    valid = valid && (absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-');
  }
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("name must be 1 to ", kMaxNameBytes,
                   " letters, digits, '.', '_' and '-', the first a letter or a digit, but is '",
                   absl::CHexEscape(name.substr(0, 2 * kMaxNameBytes)), "'"));
}

absl::Status NoSuchCollection(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat(
      "collection ", absl::CHexEscape(name.substr(0, 2 * kMaxNameBytes)), " does not exist"));
}

absl::Status DeletedMeanwhile(absl::string_view name) {
  return absl::AbortedError(
      absl::StrCat("collection ", name, " was deleted while it was being built"));
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
                                               Embedding embedding) {
  return std::make_shared<const Retriever>(published.parameters, published.anchors.labels,
                                           std::move(embedding));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Retriever>> CollectionView::Built() const {
  if (retriever != nullptr) return retriever;
  return absl::FailedPreconditionError(absl::StrCat("collection ", published->name,
                                                    " is not built yet: run `privatemail build ",
                                                    published->name, "`"));
}

absl::StatusOr<std::unique_ptr<Catalog>> Catalog::Open(std::unique_ptr<Store> store) {
  auto catalog = std::unique_ptr<Catalog>(new Catalog(std::move(store)));
  PM_ASSIGN_OR_RETURN(std::vector<StoredCollection> stored, catalog->store_->LoadCollections());
  for (StoredCollection& collection : stored) {
    auto entry = std::make_shared<Entry>();
    entry->view.items = collection.items;
    entry->view.published = Publish(std::move(collection));
    const PublishedCollection& published = *entry->view.published;
    PM_ASSIGN_OR_RETURN(std::optional<Embedding> embedding,
                        catalog->store_->LoadEmbedding(published.parameters));
    if (embedding) entry->view.retriever = MakeRetriever(published, *std::move(embedding));
    catalog->entries_.emplace(published.name, entry);
  }
  return catalog;
}

absl::StatusOr<std::shared_ptr<Catalog::Entry>> Catalog::FindEntry(absl::string_view name) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end()) return NoSuchCollection(name);
  return found->second;
}

absl::StatusOr<CollectionView> Catalog::Find(absl::string_view name) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, FindEntry(name));
  return entry->view;
}

std::vector<CollectionView> Catalog::List() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<CollectionView> views;
  views.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) views.push_back(entry->view);
  return views;
}

absl::StatusOr<CollectionView> Catalog::Create(NewCollection collection) {
  PM_RETURN_IF_ERROR(CheckName(collection.name));
  PM_ASSIGN_OR_RETURN(std::string uuid, NewUuid());
  PM_ASSIGN_OR_RETURN(
      PublicParameters parameters,
      MakePublicParameters(std::move(uuid), collection.settings, collection.anchors,
                           std::move(collection.class_names), std::move(collection.extractor)));
  StoredCollection stored;
  stored.name = std::move(collection.name);
  stored.parameters = std::move(parameters);
  stored.anchors = std::move(collection.anchors);
  const std::lock_guard<std::mutex> administration(administration_mutex_);
  PM_RETURN_IF_ERROR(store_->Create(stored));
  auto entry = std::make_shared<Entry>();
  entry->view.published = Publish(std::move(stored));
  const CollectionView view = entry->view;
  const std::lock_guard<std::mutex> guard(mutex_);
  entries_[view.published->name] = std::move(entry);
  return view;
}

absl::StatusOr<uint64_t> Catalog::Delete(absl::string_view name) {
  const std::lock_guard<std::mutex> administration(administration_mutex_);
  PM_ASSIGN_OR_RETURN(const CollectionView view, Find(name));
  PM_ASSIGN_OR_RETURN(const uint64_t items,
                      store_->Delete(view.published->parameters.collection_uuid));
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = entries_.find(std::string(name));
  found->second->deleted = true;
  entries_.erase(found);
  return items;
}

absl::StatusOr<UpsertResult> Catalog::Upsert(const CollectionView& collection,
                                             absl::Span<const Item> items) {
  const PublishedCollection& published = *collection.published;
  absl::StatusOr<UpsertResult> result = store_->Upsert(published.parameters, items);
  if (absl::IsNotFound(result.status())) return NoSuchCollection(published.name);
  PM_RETURN_IF_ERROR(result.status());
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = entries_.find(published.name);
  if (found != entries_.end() && found->second->view.published == collection.published) {
    found->second->view.items += result->inserted;
  }
  return result;
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
  return entry;
}

absl::Status Catalog::RunBuild(Entry* entry, const StepObserver& observer) {
  const PublishedCollection& published = *entry->view.published;
  const StepObserver watch = [&](int done, int steps) -> absl::Status {
    if (IsDeleted(*entry)) return DeletedMeanwhile(published.name);
    return observer ? observer(done, steps) : absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(watch(0, published.parameters.settings.steps));
  absl::StatusOr<Gallery> gallery = store_->LoadGallery(published.parameters);
  if (absl::IsNotFound(gallery.status())) return DeletedMeanwhile(published.name);
  PM_RETURN_IF_ERROR(gallery.status());
  PM_ASSIGN_OR_RETURN(Embedding embedding,
                      Embed(published.parameters, published.anchors, *std::move(gallery), watch));
  const absl::StatusOr<uint64_t> version = store_->SaveEmbedding(published.parameters, embedding);
  if (absl::IsNotFound(version.status())) return DeletedMeanwhile(published.name);
  PM_RETURN_IF_ERROR(version.status());
  embedding.version = *version;
  std::shared_ptr<const Retriever> retriever = MakeRetriever(published, std::move(embedding));
  const std::lock_guard<std::mutex> guard(mutex_);
  if (entry->deleted) return DeletedMeanwhile(published.name);
  // The former retriever is freed after the lock: this is the larger object of the two.
  entry->view.retriever.swap(retriever);
  return absl::OkStatus();
}

absl::StatusOr<CollectionView> Catalog::Build(absl::string_view name,
                                              const StepObserver& observer) {
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, BeginBuild(name));
  const absl::Status outcome = RunBuild(entry.get(), observer);
  const std::lock_guard<std::mutex> guard(mutex_);
  entry->building = false;
  PM_RETURN_IF_ERROR(outcome);
  return entry->view;
}

}  // namespace privatemail
