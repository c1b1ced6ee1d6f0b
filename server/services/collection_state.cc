#include "server/services/collection_state.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"
#include "common/embedding/public_parameters.h"
#include "common/lattice/scores.h"
#include "common/wire/proto_conversions.h"
#include "server/services/sent_blocks.h"

namespace privatemail::server {
namespace {

absl::Status CellsProblem(const CollectionView& view) {
  if (view.cells_problem.ok()) return absl::OkStatus();
  return absl::Status(view.cells_problem.code(),
                      absl::StrCat(view.cells_problem.message(), "; a build tries again"));
}

v1::CellsStatus GetCellsStatus(const CollectionView& view) {
  if (view.published->parameters.cell_partitions.empty()) return v1::CELLS_STATUS_NONE;
  if (view.retriever == nullptr) return v1::CELLS_STATUS_NOT_BUILT;
  if (view.cells != nullptr) return v1::CELLS_STATUS_READY;
  return view.cells_problem.ok() ? v1::CELLS_STATUS_PREPARING : v1::CELLS_STATUS_FAILED;
}

// While rows are loaded they are as many as the items.
void EncryptedToProto(const CollectionView& view, v1::EncryptedStatus* proto) {
  const std::shared_ptr<const EncryptedRows> rows = view.encrypted->rows();
  const int64_t count = rows == nullptr ? static_cast<int64_t>(view.items) : rows->rows;
  if (count == 0) return;
  proto->set_delta(
      static_cast<uint32_t>(lattice::ChooseDelta(count, view.published->parameters.feature_dim)));
  proto->set_rows(static_cast<uint64_t>(count));
  if (rows == nullptr) return;
  for (const auto& block : rows->blocks) {
    const EncryptedBlock::SentForm& sent = SentFormOf(*block);
    proto->set_table_bytes(proto->table_bytes() + sent.table_bytes);
    proto->set_payload_bytes(proto->payload_bytes() + sent.payload_bytes);
  }
}

}  // namespace

absl::StatusOr<CollectionView> FindCollection(const Catalog& catalog, const std::string& name,
                                              const std::string& fingerprint) {
  PM_ASSIGN_OR_RETURN(CollectionView view, catalog.Find(name));
  PM_RETURN_IF_ERROR(CheckFingerprint(view.published->fingerprint, fingerprint));
  return view;
}

absl::Status CheckHasItems(const CollectionView& view) {
  return CheckHasItems(view.published->name, static_cast<int64_t>(view.items));
}

absl::Status CheckHasItems(const std::string& name, int64_t items) {
  if (items > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("collection ", name, " has no items yet"));
}

absl::StatusOr<std::shared_ptr<const Retriever>> RequireRetriever(const CollectionView& view) {
  if (view.retriever != nullptr) return view.retriever;
  PM_RETURN_IF_ERROR(view.embedding_problem);
  return NotBuilt(view.published->name);
}

absl::StatusOr<std::shared_ptr<const CellIndex>> RequireCells(const CollectionView& view) {
  PM_RETURN_IF_ERROR(CheckHasCells(view.published->name, view.published->parameters));
  PM_RETURN_IF_ERROR(RequireRetriever(view).status());
  if (view.cells != nullptr) return view.cells;
  PM_RETURN_IF_ERROR(CellsProblem(view));
  return absl::UnavailableError(absl::StrCat("what answers for the cells of collection ",
                                             view.published->name, " is being built: try again"));
}

std::optional<SeenByFront> SeenBy(const Catalog& catalog, const Call& call) {
  const std::string text = call.Metadata(kVersionMetadata).value_or("");
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, ':');
  SeenByFront seen;
  if (catalog.is_shard() && absl::SimpleAtoi(parts.first, &seen.key) &&
      absl::SimpleAtoi(parts.second, &seen.items_version)) {
    return seen;
  }
  return std::nullopt;
}

absl::Status CheckDeletionsAreHidden(const Catalog& catalog, const CollectionView& view,
                                     const Call& call) {
  const std::optional<SeenByFront> seen = SeenBy(catalog, call);
  if (!seen.has_value() ||
      (view.collection->key() == seen->key && view.adopted_version >= seen->items_version)) {
    return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat("version ", seen->items_version, " of the items of ",
                                         view.published->name, " is not here yet: this shard has ",
                                         view.adopted_version));
}

absl::StatusOr<std::shared_ptr<const EncryptedRows>> RequireRows(const CollectionView& view) {
  std::shared_ptr<const EncryptedRows> rows = view.encrypted->rows();
  if (rows != nullptr) return rows;
  const std::string subject = absl::StrCat("the rows of collection ", view.published->name);
  const absl::Status problem = view.encrypted->problem();
  if (problem.ok()) {
    return absl::UnavailableError(absl::StrCat(subject, " are being loaded: try again"));
  }
  absl::Status unavailable =
      absl::UnavailableError(absl::StrCat(subject, " cannot be loaded: ", problem.message()));
  return IsOperatorOnlyError(problem) ? OperatorOnlyError(std::move(unavailable)) : unavailable;
}

bool IsLoaded(const CollectionView& view) {
  if (GetCellsStatus(view) == v1::CELLS_STATUS_PREPARING &&
      !view.collection->has_no_stored_cells()) {
    return false;
  }
  return view.encrypted == nullptr || view.published->parameters.feature_dim == 0 ||
         view.encrypted->rows() != nullptr || absl::IsResourceExhausted(view.encrypted->problem());
}

std::string DescribeCells(const CollectionView& view) {
  if (!view.has_cells() || view.retriever == nullptr) return "";
  if (view.cells == nullptr) {
    return view.cells_problem.ok() ? "being made" : CellsProblem(view).ToString();
  }
  const int64_t hidden = view.hidden_in_cells == nullptr ? 0 : view.hidden_in_cells->count;
  const std::string ready = ReadyCells(static_cast<uint64_t>(view.cells->items() - hidden));
  if (view.cells_problem.ok()) return ready;
  return absl::StrCat(ready, " of an earlier build; ", CellsProblem(view).ToString());
}

void CollectionToProto(const CollectionView& view, v1::GetCollectionResponse* proto) {
  ToProto(view.published->parameters, proto->mutable_parameters());
  proto->set_fingerprint(view.published->fingerprint);
  proto->set_items(view.items);
  if (view.retriever != nullptr) {
    proto->set_embedded_items(view.embedded_items());
    proto->set_embedding_version(view.retriever->version());
    proto->set_index(view.retriever->index_description());
  }
  proto->set_name(view.published->name);
  proto->set_changes_since_embedding(view.changes_since_embedding());
  proto->set_cells(DescribeCells(view));
  proto->set_cells_status(GetCellsStatus(view));
  proto->set_cells_partitions(
      static_cast<uint32_t>(view.published->parameters.cell_partitions.size()));
  if (view.encrypted != nullptr) EncryptedToProto(view, proto->mutable_encrypted());
  if (proto->cells_status() == v1::CELLS_STATUS_READY) {
    const int64_t hidden = view.hidden_in_cells == nullptr ? 0 : view.hidden_in_cells->count;
    proto->set_cells_items(static_cast<uint64_t>(view.cells->items() - hidden));
  }
}

void DescribeCollection(const CollectionView& view, v1::GetCollectionResponse* proto) {
  CollectionToProto(view, proto);
  const std::optional<double> done = view.collection->build_share();
  if (done.has_value()) proto->set_build_share(*done);
  // Preparing the cells of the latest build has not begun yet.
  const bool is_due = view.cells != nullptr && view.cells_problem.ok() &&
                      view.cells->embedding_version() < proto->embedding_version();
  const std::optional<double> cells = view.collection->cells_share();
  // This shard has done its work on cells that wait for those of other shards.
  const double share = cells.value_or(view.collection->awaits_cells() ? 1 : 0);
  if (cells.has_value() || is_due) proto->set_cells_share(share);
}

}  // namespace privatemail::server
