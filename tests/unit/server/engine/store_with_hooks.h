// A store with hooks, for concurrent events at chosen moments.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_STORE_WITH_HOOKS_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_STORE_WITH_HOOKS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "server/store/store.h"

namespace privatemail::testing {

using namespace server;  // NOLINT: every test of the server

// Called before an operation of the store or between it and its result. An error is returned
// instead of the result.
struct StoreHooks {
  // Before.
  std::function<void()> create = [] {};
  std::function<absl::Status(const PublicParameters&)> read_embedding =
      [](const PublicParameters&) { return absl::OkStatus(); };  // LoadEmbedding
  std::function<absl::Status(uint64_t)> read_changes = [](uint64_t) { return absl::OkStatus(); };
  // Before each part of ReadChanges, which it may change.
  std::function<absl::Status(ItemChanges*, std::vector<Item>*)> changes_part =
      [](ItemChanges*, std::vector<Item>*) { return absl::OkStatus(); };
  std::function<absl::Status()> save_cells = [] { return absl::OkStatus(); };
  // After.
  std::function<absl::Status()> deleted_since = [] { return absl::OkStatus(); };
  std::function<void()> read_gallery = [] {};
  std::function<absl::Status(std::optional<StoredCells>*)> load_cells =
      [](std::optional<StoredCells>*) { return absl::OkStatus(); };
};

class StoreWithHooks final : public Store {
 public:
  // The hooks must outlive it.
  StoreWithHooks(std::unique_ptr<Store> store, const StoreHooks* hooks)
      : store_(std::move(store)), hooks_(hooks) {}

  absl::StatusOr<std::optional<std::vector<DeletedItem>>> DeletedSince(const PublicParameters& p,
                                                                       uint64_t version,
                                                                       uint64_t after) override {
    auto deleted = store_->DeletedSince(p, version, after);
    if (absl::Status status = hooks_->deleted_since(); !status.ok()) return status;
    return deleted;
  }

  absl::StatusOr<std::vector<StoredCollection>> LoadCollections() override {
    return store_->LoadCollections();
  }
  absl::StatusOr<StoredCollection> LoadCollection(absl::string_view uuid) override {
    return store_->LoadCollection(uuid);
  }
  absl::StatusOr<std::vector<CollectionState>> ListStates() override {
    return store_->ListStates();
  }
  absl::Status Create(const StoredCollection& c) override {
    hooks_->create();
    return store_->Create(c);
  }
  absl::Status ImportParts(const StoredCollection& c, GallerySource source) override {
    return store_->Import(c, source);
  }
  absl::StatusOr<uint64_t> Delete(absl::string_view uuid) override { return store_->Delete(uuid); }
  absl::StatusOr<bool> RemoveSomeRows() override { return store_->RemoveSomeRows(); }
  absl::StatusOr<int64_t> FixDimension(absl::string_view uuid, int64_t dimension) override {
    return store_->FixDimension(uuid, dimension);
  }
  absl::Status AppendClassNames(absl::string_view uuid,
                                const std::vector<std::string>& names) override {
    return store_->AppendClassNames(uuid, names);
  }
  absl::StatusOr<UpsertResult> Upsert(const PublicParameters& p,
                                      absl::Span<const Item> items) override {
    return store_->Upsert(p, items);
  }
  absl::StatusOr<DeleteResult> DeleteItems(const PublicParameters& p,
                                           absl::Span<const std::string> ids) override {
    return store_->DeleteItems(p, ids);
  }
  absl::StatusOr<std::vector<Item>> GetItems(const PublicParameters& p,
                                             absl::Span<const std::string> ids) override {
    return store_->GetItems(p, ids);
  }
  absl::Status ReadGallery(const PublicParameters& p, GalleryVisitor visit) override {
    const absl::Status read = store_->ReadGallery(p, visit);
    hooks_->read_gallery();
    return read;
  }
  absl::Status ReadChanges(const PublicParameters& p, uint64_t after,
                           ChangesVisitor visit) override {
    if (absl::Status read = hooks_->read_changes(after); !read.ok()) return read;
    return store_->ReadChanges(
        p, after, [&](const ItemChanges& changes, std::vector<Item> part) -> absl::Status {
          ItemChanges shown = changes;
          PM_RETURN_IF_ERROR(hooks_->changes_part(&shown, &part));
          return visit(shown, std::move(part));
        });
  }
  absl::StatusOr<uint64_t> SaveEmbedding(const PublicParameters& p,
                                         const Embedding& embedding) override {
    return store_->SaveEmbedding(p, embedding);
  }
  absl::StatusOr<std::optional<Embedding>> LoadEmbedding(const PublicParameters& p) override {
    if (absl::Status read = hooks_->read_embedding(p); !read.ok()) return read;
    return store_->LoadEmbedding(p);
  }
  absl::Status SaveCells(const PublicParameters& p, const EmbeddingVersion& of,
                         absl::string_view image) override {
    PM_RETURN_IF_ERROR(hooks_->save_cells());
    return store_->SaveCells(p, of, image);
  }
  absl::Status SaveQuality(const PublicParameters& p, const EmbeddingVersion& of,
                           const CellQuality& quality) override {
    return store_->SaveQuality(p, of, quality);
  }
  absl::StatusOr<std::optional<StoredCells>> LoadCells(const PublicParameters& p,
                                                       const EmbeddingVersion& of,
                                                       SizeCheck check) override {
    auto cells = store_->LoadCells(p, of, check);
    if (cells.ok()) PM_RETURN_IF_ERROR(hooks_->load_cells(&*cells));
    return cells;
  }
  absl::StatusOr<std::shared_ptr<const void>> ClaimCells(const PublicParameters& p) override {
    return store_->ClaimCells(p);
  }
  absl::StatusOr<ChangesSinceEmbedding> CountChanges(const PublicParameters& p) override {
    return store_->CountChanges(p);
  }
  std::unique_ptr<ChangeWatch> Watch(std::function<absl::Status()> changed,
                                     std::function<void(const absl::Status&)> report) override {
    return store_->Watch(std::move(changed), std::move(report));
  }

 protected:
  absl::Status ScanItems(const PublicParameters&, absl::string_view, int64_t, bool,
                         absl::FunctionRef<bool(Item)>) override {
    return absl::UnimplementedError("unused");
  }

 private:
  const std::unique_ptr<Store> store_;
  const StoreHooks* const hooks_;
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_STORE_WITH_HOOKS_H_
