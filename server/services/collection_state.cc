#include "server/services/collection_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"

namespace privatemail::server {
namespace {

absl::Status CellsProblem(const CollectionView& view) {
  if (view.cells_problem.ok()) return absl::OkStatus();
  return absl::Status(view.cells_problem.code(),
                      absl::StrCat(view.cells_problem.message(), "; a build tries again"));
}

}  // namespace

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
  const std::string& name = view.published->name;
  return absl::FailedPreconditionError(absl::StrCat("collection ", name, " is not built yet"));
}

absl::StatusOr<std::shared_ptr<const CellIndex>> RequireCells(const CollectionView& view) {
  PM_RETURN_IF_ERROR(CheckHasCells(view.published->name, view.published->parameters));
  PM_RETURN_IF_ERROR(RequireRetriever(view).status());
  if (view.cells != nullptr) return view.cells;
  PM_RETURN_IF_ERROR(CellsProblem(view));
  return absl::UnavailableError(absl::StrCat("what answers for the cells of collection ",
                                             view.published->name, " is being built: try again"));
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

std::string DescribeCells(const CollectionView& view) {
  if (!view.has_cells() || view.retriever == nullptr) return "";
  if (view.cells == nullptr) {
    return view.cells_problem.ok() ? "being made" : CellsProblem(view).ToString();
  }
  const int64_t hidden = view.hidden_in_cells == nullptr ? 0 : view.hidden_in_cells->count;
  const std::string ready = absl::StrCat("ready: ", view.cells->items() - hidden, " items");
  if (view.cells_problem.ok()) return ready;
  return absl::StrCat(ready, " of an earlier build; ", CellsProblem(view).ToString());
}

}  // namespace privatemail::server
