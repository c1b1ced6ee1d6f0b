// Catalog: cell indexes in the background.

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/cancellation.h"
#include "common/base/status_macros.h"
#include "server/engine/catalog.h"
#include "server/engine/row_file.h"

namespace privatemail::server {
namespace {

// The longest wait for another daemon: a store may take hours to notice that one has lost its host.
constexpr absl::Duration kMaxWait = absl::Minutes(10);

EmbeddingVersion VersionOf(uint64_t version, uint64_t items_version) {
  return {static_cast<int64_t>(version), static_cast<int64_t>(items_version)};
}
EmbeddingVersion VersionOf(const CellIndex& cells) {
  return VersionOf(cells.embedding_version(), cells.items_version());
}

std::vector<std::string> HiddenIds(const CollectionView& view) {
  std::vector<std::string> ids;
  if (view.hidden == nullptr) return ids;
  for (size_t row = 0; row < view.hidden->hidden.size(); ++row) {
    if (view.hidden->hidden[row]) ids.push_back(view.retriever->IdOf(static_cast<int64_t>(row)));
  }
  return ids;
}

// The rows that CellIndex::Create reads twice in blocks, to find their cells and, which takes
// longer, what is near. Reports the share of the work on the blocks that were read before; of fewer
// than kMinBlocks it would be no estimate.
class WatchedRows : public RowSource {
 public:
  WatchedRows(const RowSource& rows, std::function<void(double share)> report)
      : rows_(rows), report_(std::move(report)) {}

  Eigen::Index rows() const override { return rows_.rows(); }
  Eigen::Index cols() const override { return rows_.cols(); }
  absl::Status Read(Eigen::Index first, FloatRows block) const override {
    constexpr Eigen::Index kMinBlocks = 4;
    if (block.rows() > 1 && rows() >= kMinBlocks * RowsOfBlock(cols())) {
      constexpr double kFirstPass = .05;
      const double passes = static_cast<double>(read_) / static_cast<double>(rows());
      report_(passes < 1 ? kFirstPass * passes
                         : std::min(1., kFirstPass + (1 - kFirstPass) * (passes - 1)));
      read_ += block.rows();
    }
    return rows_.Read(first, block);
  }

 private:
  const RowSource& rows_;
  const std::function<void(double share)> report_;
  mutable std::atomic<int64_t> read_ = 0;
};

}  // namespace

// The inputs of CellIndex::Create.
struct Catalog::CellInputs {
  Gallery gallery;                         // without features
  std::unique_ptr<const RowSource> items;  // their unit rows
};

void Catalog::QueueCells(std::weak_ptr<Collection> collection, CellsStep step, absl::Duration delay,
                         std::optional<Stopwatch> waited) {
  const auto prepare = [this, step, weak = std::move(collection),
                        waited](const std::atomic<bool>& stopped) {
    const CollectionPtr locked = weak.lock();
    if (locked == nullptr || !locked->view().has_cells()) return;
    const Stopwatch since = waited.value_or(Stopwatch());
    const auto [next, pause] = PrepareCells(locked.get(), step, since, stopped);
    const bool is_queued = next == CellsStep::kAwaitShards && locked->awaits_cells().exchange(true);
    if (next == CellsStep::kNone || is_queued) return;
    QueueCells(weak, next, pause, next == step ? std::optional(since) : std::nullopt);
  };
  (step == CellsStep::kAwaitShards ? awaited_cells_ : cells_).Add(prepare, delay);
}

std::pair<Catalog::CellsStep, absl::Duration> Catalog::PrepareCells(
    Collection* collection, CellsStep step, const Stopwatch& waited,
    const std::atomic<bool>& stopped) {
  constexpr absl::Duration kPause = absl::Milliseconds(500), kPauseAfterFailure = absl::Seconds(10);
  if (step == CellsStep::kAwaitShards) collection->awaits_cells() = false;
  std::optional<CollectionView> view = collection->BeginCells();
  if (!view.has_value()) return {CellsStep::kNone, {}};
  const std::string name = view->published->name;
  absl::StatusOr<CellsStep> outcome;
  try {
    outcome =
        LoadOrBuildCells(collection, *std::exchange(view, std::nullopt), step, waited, stopped);
  } catch (const std::exception& error) {  // of FAISS, or out of memory
    outcome = absl::InternalError(error.what());
  }
  // The store was away, which no later step would notice.
  const bool is_away = absl::IsUnavailable(outcome.status());
  absl::Status problem;
  if (!outcome.ok() && !is_away && !stopped) {
    problem =
        absl::UnavailableError(absl::StrCat("what answers for the cells of collection ", name,
                                            " could not be built: ", outcome.status().message()));
  }
  collection->EndCells(problem);
  collection->SetCellsShare(std::nullopt);
  if (outcome.ok() || stopped) return {outcome.value_or(CellsStep::kNone), kPause};
  if (is_away) return {step, kPause};
  // The other shards wait for this one, or have loaded what it has not.
  return {store_->is_shard() ? CellsStep::kAwaitShards : CellsStep::kNone, kPauseAfterFailure};
}

absl::StatusOr<Catalog::CellsStep> Catalog::LoadOrBuildCells(Collection* collection,
                                                             CollectionView view, CellsStep step,
                                                             const Stopwatch& waited,
                                                             const std::atomic<bool>& stopped) {
  const PublishedCollection& published = *view.published;
  std::shared_ptr<const void> claim;
  bool is_stored = false;
  while (!stopped) {
    absl::StatusOr<bool> loaded = LoadCells(collection, view);
    const bool awaits_shards = absl::IsAborted(loaded.status());
    const bool has_none = loaded.ok() && !*loaded, is_damaged = absl::IsDataLoss(loaded.status());
    if (awaits_shards || has_none) collection->has_no_stored_cells() = true;
    if (awaits_shards) return CellsStep::kAwaitShards;
    if (step == CellsStep::kAwaitShards && (has_none || is_damaged)) return CellsStep::kLoadOrBuild;
    if (is_damaged) {
      if (warn_) {
        warn_(absl::StrCat(
            "the stored cell index of collection ", published.name,
            " is replaced by a new one, because it cannot be read: ", loaded.status().message()));
      }
      break;
    }
    PM_ASSIGN_OR_RETURN(is_stored, std::move(loaded));
    if (is_stored) {
      const CollectionView now = collection->view();
      if (!PublishesQuality(published.parameters) || now.quality != nullptr ||
          now.cells->items() < kMinQualityQueries) {
        return CellsStep::kNone;
      }
      break;  // a measurement needs what only a build has
    }
    if (claim != nullptr || waited.Elapsed() > kMaxWait) break;
    PM_ASSIGN_OR_RETURN(claim, store_->ClaimCells(published.parameters));
    if (claim == nullptr) return CellsStep::kLoadOrBuild;
    // Loads once more: another daemon may have stored them just before.
  }
  PM_RETURN_IF_ERROR(BuildCells(collection, std::move(view), is_stored, stopped));
  return store_->is_shard() ? CellsStep::kAwaitShards : CellsStep::kNone;
}

absl::StatusOr<bool> Catalog::LoadCells(Collection* collection, const CollectionView& view) {
  const PublicParameters& parameters = view.published->parameters;
  const Retriever& retriever = *view.retriever;
  const auto check = [&](int64_t bytes) {
    return CheckBuildMemory("reading it", bytes, options().cells_memory);
  };
  PM_ASSIGN_OR_RETURN(
      std::optional<StoredCells> stored,
      store_->LoadCells(parameters, VersionOf(retriever.version(), retriever.items_version()),
                        check));
  if (!stored.has_value()) return false;
  PM_ASSIGN_OR_RETURN(CellContents contents, ReadCellImage(parameters, stored->image));
  stored->image = {};
  PM_RETURN_IF_ERROR(TakePayloads(retriever, &contents));
  PM_RETURN_IF_ERROR(CheckCellMemory(*collection, parameters, contents.gallery));
  const auto cells = CellIndex::Restore(parameters, std::move(contents));
  collection->InstallCells(cells, HiddenIds(view));
  if (stored->quality.has_value()) {
    collection->InstallQuality(cells.get(),
                               std::make_shared<const CellQuality>(*std::move(stored->quality)));
  }
  return true;
}

absl::Status Catalog::BuildCells(Collection* collection, CollectionView view, bool is_stored,
                                 const std::atomic<bool>& stopped) {
  const std::shared_ptr<const PublishedCollection> published = view.published;
  const PublicParameters& parameters = published->parameters;
  PM_ASSIGN_OR_RETURN(CellInputs inputs, ReadCellInputs(view, stopped));
  const uint64_t embedding_version = view.retriever->version();
  view = {};  // so that a later build frees what it replaces
  PM_RETURN_IF_ERROR(CheckCellMemory(*collection, parameters, inputs.gallery));
  QualitySample sample;
  const WatchedRows rows(*inputs.items, [&](double share) { collection->SetCellsShare(share); });
  PM_ASSIGN_OR_RETURN(
      const std::shared_ptr<const CellIndex> cells,
      CellIndex::Create(parameters, published->anchors, std::move(inputs.gallery), rows, stopped,
                        embedding_version, PublishesQuality(parameters) ? &sample : nullptr));
  inputs.items = nullptr;
  if (store_->is_shard()) {  // installed once all shards have stored theirs
    const absl::Status saved = store_->SaveCells(parameters, VersionOf(*cells),
                                                 WriteCellImage(parameters, cells->contents()));
    return absl::IsAborted(saved) ? absl::OkStatus() : saved;
  }
  collection->InstallCells(cells);
  if (!is_stored) {
    WarnUnlessStored(*published, store_->SaveCells(parameters, VersionOf(*cells),
                                                   WriteCellImage(parameters, cells->contents())));
  }
  if (PublishesQuality(parameters)) QueueMeasurement(collection, cells, std::move(sample));
  return absl::OkStatus();
}

// The gallery gets the embedding's version, so InstallCells hides all later deletions.
absl::StatusOr<Catalog::CellInputs> Catalog::ReadCellInputs(
    const CollectionView& view, const std::atomic<bool>& stopped) const {
  const PublicParameters& parameters = view.published->parameters;
  const Retriever& retriever = *view.retriever;
  const int64_t memory = options().cells_memory;
  const int64_t index_bytes = CellIndex::MemoryToCreate(parameters, retriever.items());
  const int64_t feature_bytes =
      retriever.items() * parameters.feature_dim * static_cast<int64_t>(sizeof(float));
  const bool in_memory = index_bytes + feature_bytes + retriever.memory() <= memory;
  CellInputs inputs;
  EmbeddingFilter embedded(retriever, view.hidden.get());
  std::unique_ptr<RowFile> file;
  FloatMatrix features;
  Eigen::Index rows = 0;
  if (in_memory) {
    features.resize(retriever.items(), parameters.feature_dim);
  } else {
    PM_ASSIGN_OR_RETURN(file, RowFile::Create(directory_, parameters.feature_dim));
  }
  int64_t bytes = in_memory ? feature_bytes : 0;
  PM_RETURN_IF_ERROR(
      store_->ReadGallery(parameters, [&](int64_t /*items*/, Gallery part) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
        embedded.Keep(&part);
        const FloatMatrix units = CellIndex::UnitItems(std::exchange(part.features, {}));
        bytes += BytesOf(part);
        PM_RETURN_IF_ERROR(CheckBuildMemory("building it", index_bytes + bytes, memory));
        AppendRows(std::move(part), &inputs.gallery);
        if (!in_memory) return file->Append(units);
        features.middleRows(rows, units.rows()) = units;
        rows += units.rows();
        return absl::OkStatus();
      }));
  if (in_memory) {
    features.conservativeResize(rows, Eigen::NoChange);
    inputs.items = std::make_unique<MatrixRows>(std::move(features));
  } else {
    inputs.items = std::move(file);
  }
  return inputs;
}

void Catalog::WarnUnlessStored(const PublishedCollection& published,
                               const absl::Status& stored) const {
  if (stored.ok() || absl::IsAborted(stored) || absl::IsNotFound(stored) ||
      absl::IsCancelled(stored) || !warn_) {
    return;
  }
  warn_(
      absl::StrCat("the cell index of collection ", published.name,
                   " could not be stored, so the next start builds it again: ", stored.message()));
}

absl::Status Catalog::CheckCellMemory(const Collection& collection,
                                      const PublicParameters& parameters,
                                      const Gallery& gallery) const {
  const std::shared_ptr<const CellIndex> former = collection.view().cells;
  const int64_t kept =
      CellIndex::MemoryToKeep(parameters, std::ssize(gallery.ids)) + BytesOf(gallery);
  return CheckMemory("the cell index of this one", kept, former == nullptr ? 0 : former->memory());
}

void Catalog::QueueMeasurement(Collection* collection,
                               const std::shared_ptr<const CellIndex>& cells,
                               QualitySample sample) {
  const auto shared = std::make_shared<const QualitySample>(std::move(sample));
  measurements_.Add([this, weak = collection->weak_from_this(), weak_cells = std::weak_ptr(cells),
                     shared](const std::atomic<bool>& stopped) {
    const CollectionPtr locked = weak.lock();
    const auto measured = weak_cells.lock();
    if (locked == nullptr || measured == nullptr) return;
    const auto obsolete = [&] {
      return stopped || locked->removed() || locked->view().cells != measured;
    };
    const auto published = locked->view().published;
    std::optional<CellQuality> found =
        MeasureQuality(published->parameters, measured->contents(), *shared, obsolete,
                       [&](double share) { locked->SetCellsShare(share); });
    locked->SetCellsShare(std::nullopt);
    if (!found.has_value()) return;
    const auto quality = std::make_shared<const CellQuality>(*std::move(found));
    locked->InstallQuality(measured.get(), quality);
    WarnUnlessStored(*published,
                     store_->SaveQuality(published->parameters, VersionOf(*measured), *quality));
  });
}

void EmbeddingFilter::Keep(Gallery* part) {
  size_t kept = 0;
  for (size_t row = 0; row < part->ids.size(); ++row) {
    const std::string& id = part->ids[row];
    while (next_ < retriever_.items() && retriever_.IdOf(next_) < id) ++next_;
    if (next_ == retriever_.items()) break;
    const bool is_hidden = hidden_ != nullptr && hidden_->hidden[static_cast<size_t>(next_)];
    if (retriever_.IdOf(next_) != id || is_hidden) continue;
    if (kept != row) {
      part->ids[kept] = std::move(part->ids[row]);
      part->features.row(static_cast<Eigen::Index>(kept)) =
          part->features.row(static_cast<Eigen::Index>(row));
    }
    part->labels[kept] = retriever_.LabelOf(next_);
    part->payloads[kept++] = retriever_.PayloadOf(next_);
  }
  part->ids.resize(kept);
  part->labels.resize(kept);
  part->payloads.resize(kept);
  part->features.conservativeResize(static_cast<Eigen::Index>(kept), Eigen::NoChange);
  part->version = retriever_.items_version();
}

absl::Status TakePayloads(const Retriever& retriever, CellContents* contents) {
  Gallery& gallery = contents->gallery;
  bool same = contents->embedding_version == retriever.version() &&
              gallery.version == retriever.items_version();
  int64_t embedded = 0;  // ids of both ascend
  for (size_t row = 0; same && row < gallery.ids.size(); ++row, ++embedded) {
    while (embedded < retriever.items() && retriever.IdOf(embedded) < gallery.ids[row]) ++embedded;
    same = embedded < retriever.items() && retriever.IdOf(embedded) == gallery.ids[row] &&
           retriever.LabelOf(embedded) == gallery.labels[row];
    if (same) gallery.payloads[row] = retriever.PayloadOf(embedded);
  }
  return same ? absl::OkStatus() : absl::DataLossError("it is of another embedding");
}

}  // namespace privatemail::server
