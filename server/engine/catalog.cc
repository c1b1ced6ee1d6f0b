#include "server/engine/catalog.h"

#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/engine/publish.h"
#include "server/store/uuid.h"

namespace privatemail::server {
namespace {

constexpr size_t kMaxNameBytes = 64;

}  // namespace

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

absl::StatusOr<std::shared_ptr<const Retriever>> CollectionView::Built() const {
  if (retriever != nullptr) return retriever;
  return absl::FailedPreconditionError(absl::StrCat("collection ", published->name,
                                                    " is not built yet: run `privatemail build ",
                                                    published->name, "`"));
}

uint64_t CollectionView::embedded_items() const {
  if (retriever == nullptr) return 0;
  return static_cast<uint64_t>(retriever->items() - (hidden == nullptr ? 0 : hidden->count));
}

// Each change takes the next number, and nothing else does.
uint64_t CollectionView::changes_since_embedding() const {
  if (retriever == nullptr) return items;  // inserted, whatever numbers a restored one began with
  const uint64_t embedded = retriever->items_version();
  // Another daemon may have embedded changes that this one has yet to be told of.
  return latest_version > embedded ? latest_version - embedded : 0;
}

// The feature vectors, and images of them with their degrees: four of the iteration, and of an
// exact product one a core.
int64_t CollectionView::build_memory(Features features) const {
  const int64_t images = 4 + static_cast<int64_t>(std::thread::hardware_concurrency());
  const PublicParameters& parameters = published->parameters;
  const int64_t image_values = images * (parameters.settings.embedding_dim + 1);
  const int64_t rows = static_cast<int64_t>(items) + parameters.anchor_count;
  const int64_t feature_bytes = features == Features::kInMemory
                                    ? parameters.feature_dim * static_cast<int64_t>(sizeof(float))
                                    : 0;
  // Of the classes, C x C: the build's label graph and the one that the new embedding comes with.
  const int64_t classes = std::ssize(parameters.slot_labels);
  const int64_t graphs = 2 * classes * classes;
  return rows * feature_bytes +
         (rows * image_values + graphs) * static_cast<int64_t>(sizeof(double));
}

absl::StatusOr<std::unique_ptr<Catalog>> Catalog::Open(std::unique_ptr<Store> store,
                                                       std::string directory, RefreshReport report,
                                                       const CatalogOptions& options) {
  auto catalog = std::unique_ptr<Catalog>(new Catalog(std::move(store), std::move(directory)));
  catalog->options_ = options;
  PM_ASSIGN_OR_RETURN(std::vector<StoredCollection> stored, catalog->store_->LoadCollections());
  // So that none waits for one that takes longer than itself.
  std::multimap<uint64_t, std::shared_ptr<Entry>> by_items;
  for (StoredCollection& collection : stored) {
    auto entry = std::make_shared<Entry>();
    const uint64_t latest_version = collection.latest_version;
    SetItems(collection.items, latest_version, entry.get());
    entry->key = collection.key;
    entry->view.published = Publish(std::move(collection));
    const PublishedCollection& published = *entry->view.published;
    absl::StatusOr<std::optional<Embedding>> embedding =
        catalog->store_->LoadEmbedding(published.parameters);
    if (absl::IsNotFound(embedding.status())) continue;  // another daemon has just deleted it
    if (absl::IsDataLoss(embedding.status())) {
      // It can be made again of the items; and the other collections are as good as they were.
      catalog->problems_.push_back(absl::StrCat(
          "collection ", published.name,
          " is not built: its embedding cannot be read: ", embedding.status().message()));
      embedding = std::nullopt;
    }
    PM_RETURN_IF_ERROR(embedding.status());
    if (embedding->has_value()) {
      const std::vector<std::string> deleted = std::move((*embedding)->deleted);
      const auto retriever = MakeRetriever(published, **std::move(embedding), options.index);
      Install(retriever, {latest_version, deleted}, /*gone=*/{}, entry.get());
      by_items.emplace(entry->view.items, entry);
    }
    catalog->entries_.emplace(published.name, entry);
  }
  for (const auto& [items, entry] : by_items) catalog->MakeLater(entry);
  catalog->watch_ = catalog->store_->Watch([catalog = catalog.get()] { return catalog->Refresh(); },
                                           std::move(report));
  return catalog;
}

absl::StatusOr<std::shared_ptr<Catalog::Entry>> Catalog::FindEntry(absl::string_view name) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end()) return NoSuchCollection(name);
  return found->second;
}

std::shared_ptr<Catalog::Entry> Catalog::FindEntry(const PublishedCollection& published) const {
  const auto found = entries_.find(published.name);
  const bool same =
      found != entries_.end() && found->second->view.published->parameters.collection_uuid ==
                                     published.parameters.collection_uuid;
  return same ? found->second : nullptr;
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
  PM_RETURN_IF_ERROR(CheckCellCode(!collection.cells.empty(), collection.cell_code.has_value()));
  if (!collection.cells.empty()) PM_RETURN_IF_ERROR(CheckNewName(collection.name));
  PM_ASSIGN_OR_RETURN(std::vector<CellPartition> partitions,
                      PartitionInto(collection.cells, collection.anchors));
  PM_ASSIGN_OR_RETURN(std::optional<ProductCodebook> codebook,
                      CodebookFor(collection.cell_code, collection.anchors));
  PM_ASSIGN_OR_RETURN(
      PublicParameters parameters,
      MakePublicParameters(std::move(uuid), collection.settings, collection.anchors,
                           std::move(collection.class_names), std::move(collection.extractor),
                           std::move(partitions), collection.cell_code, std::move(codebook)));
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
  const absl::StatusOr<uint64_t> items = store_->Delete(view.published->parameters.collection_uuid);
  // Another daemon may have deleted it already, which this catalog is about to be told.
  if (absl::IsNotFound(items.status())) return NoSuchCollection(name);
  PM_RETURN_IF_ERROR(items.status());
  std::shared_ptr<Entry> former;  // freed after the lock: what it holds is large
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = entries_.find(std::string(name));
  found->second->deleted = true;
  former = std::move(found->second);
  entries_.erase(found);
  return items;
}

void Catalog::SetItems(uint64_t items, uint64_t latest_version, Entry* entry) {
  if (latest_version < entry->view.latest_version) return;  // overtaken by a later change
  entry->view.items = items;
  entry->view.latest_version = latest_version;
}

void Catalog::Hide(absl::Span<const std::string> ids, Entry* entry) {
  CollectionView& view = entry->view;
  if (view.retriever != nullptr) view.hidden = HideAlso(*view.retriever, ids, view.hidden);
  if (view.cells != nullptr) {
    view.hidden_in_cells = HideAlso(*view.cells, ids, view.hidden_in_cells);
  }
}

absl::StatusOr<UpsertResult> Catalog::Upsert(const CollectionView& collection,
                                             absl::Span<const Item> items) {
  const PublishedCollection& published = *collection.published;
  absl::StatusOr<UpsertResult> result = store_->Upsert(published.parameters, items);
  if (absl::IsNotFound(result.status())) return NoSuchCollection(published.name);
  PM_RETURN_IF_ERROR(result.status());
  const std::lock_guard<std::mutex> guard(mutex_);
  if (const auto entry = FindEntry(published); entry != nullptr) {
    SetItems(result->items, result->latest_version, entry.get());
  }
  return result;
}

absl::StatusOr<DeleteResult> Catalog::DeleteItems(const CollectionView& collection,
                                                  absl::Span<const std::string> ids) {
  const PublishedCollection& published = *collection.published;
  absl::StatusOr<DeleteResult> result = store_->DeleteItems(published.parameters, ids);
  if (absl::IsNotFound(result.status())) return NoSuchCollection(published.name);
  PM_RETURN_IF_ERROR(result.status());
  const std::lock_guard<std::mutex> guard(mutex_);
  if (const auto entry = FindEntry(published); entry != nullptr) {
    SetItems(result->items, result->latest_version, entry.get());
    if (entry->loads > 0) {
      entry->deletions.push_back({result->latest_version, {ids.begin(), ids.end()}});
    }
    Hide(ids, entry.get());
  }
  return result;
}

absl::StatusOr<std::vector<Item>> Catalog::GetItems(const CollectionView& collection,
                                                    absl::Span<const std::string> ids) const {
  auto items = store_->GetItems(collection.published->parameters, ids);
  if (absl::IsNotFound(items.status())) return NoSuchCollection(collection.published->name);
  return items;
}

absl::StatusOr<ItemPage> Catalog::ScrollItems(const CollectionView& collection,
                                              const std::optional<PayloadFilter>& filter,
                                              absl::string_view after, int64_t limit) const {
  auto page = store_->ScrollItems(collection.published->parameters, filter, after, limit);
  if (absl::IsNotFound(page.status())) return NoSuchCollection(collection.published->name);
  return page;
}

absl::StatusOr<uint64_t> Catalog::CountItems(const CollectionView& collection,
                                             const std::optional<PayloadFilter>& filter,
                                             const std::function<bool()>& cancelled) const {
  auto count = store_->CountItems(collection.published->parameters, filter, cancelled);
  if (absl::IsNotFound(count.status())) return NoSuchCollection(collection.published->name);
  return count;
}

absl::StatusOr<ChangesSinceEmbedding> Catalog::CountChanges(
    const CollectionView& collection) const {
  auto changes = store_->CountChanges(collection.published->parameters);
  if (absl::IsNotFound(changes.status())) return NoSuchCollection(collection.published->name);
  return changes;
}

}  // namespace privatemail::server
