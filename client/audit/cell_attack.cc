#include "client/audit/cell_attack.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/schemes/cells/cell_steps.h"
#include "common/base/status_macros.h"

namespace privatemail::client::audit {
namespace {

std::vector<int64_t> CellsFrom(int64_t first, int64_t count) {
  std::vector<int64_t> cells(static_cast<size_t>(count));
  std::iota(cells.begin(), cells.end(), first);
  return cells;
}

// Whether the cells contain as many as possible of one query's best (the first `focus`) and none of
// the other query's (the next `focus`).
bool IndicatesFirst(const CellChoice& choice, const std::vector<int64_t>& cells) {
  const auto count = [&](int64_t from) {
    return std::count_if(cells.begin(), cells.end(),
                         [&](int64_t cell) { return cell >= from && cell < from + choice.focus; });
  };
  return count(0) == std::min(choice.focus, choice.ask) && count(choice.focus) == 0;
}

absl::StatusOr<Attack> MakeChoiceAttack(const CellChoice& choice, const ChooseFn& choose) {
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism, CellMechanism::Create(choice));
  return Attack{.description = absl::StrCat(
                    choice.ask, " of ", choice.cells, " cells, drawn to ", choice.focus,
                    " or to as many others: all that can be of the one, none of the other"),
                .event = [=](Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
                  const int64_t first = neighbour == Neighbour::kOne ? 0 : choice.focus;
                  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> cells,
                                      choose(mechanism, CellsFrom(first, choice.focus), bits));
                  return IndicatesFirst(choice, cells);
                }};
}

// A target nearest to its class's cell.
Eigen::RowVectorXf MakeClassTarget(int32_t label, int32_t classes) {
  return Eigen::RowVectorXf::Unit(classes, label);
}

// A collection with one cell for each class.
absl::StatusOr<CellScheme> MakeOneCellPerClassScheme(int32_t classes) {
  Anchors anchors{FloatMatrix(2 * classes, classes), {}};
  CellPartition partition{.cells = classes, .cell_of_anchor = {}};
  for (int32_t i = 0; i < 2 * classes; ++i) {
    const int32_t label = i % classes;
    anchors.features.row(i) = MakeClassTarget(label, classes);
    anchors.features(i, (label + 1) % classes) = i < classes ? .1F : -.1F;
    anchors.labels.push_back(label);
    partition.cell_of_anchor.push_back(label);
  }
  PM_ASSIGN_OR_RETURN(PublicParameters parameters,
                      MakePublicParameters("audit", EmbeddingSettings{}, anchors, {}, "vectors",
                                           {std::move(partition)}, CellCode::kFloat16));
  return CellScheme::Create(std::move(parameters), anchors);
}

absl::StatusOr<Attack> MakeRequestAttack(int32_t classes, const CellCost& cost,
                                         const RequestCellsFn& request_cells) {
  PM_ASSIGN_OR_RETURN(CellScheme made, MakeOneCellPerClassScheme(classes));
  const auto scheme = std::make_shared<const CellScheme>(std::move(made));
  return Attack{
      .description =
          absl::StrCat("a request for one of ", classes, " cells, one for each class, names ",
                       "the class of the one target or of another"),
      .event = [=](Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
        PM_ASSIGN_OR_RETURN(
            const std::vector<int64_t> cells,
            request_cells(*scheme, MakeClassTarget(neighbour == Neighbour::kOne ? 0 : 1, classes),
                          cost, bits));
        return cells.front() == 0;
      },
      .max_releases = 200'000};  // each calibrates its mechanism
}

}  // namespace

absl::StatusOr<Subject> AttackCells(double epsilon, const ChooseFn& choose) {
  const CellChoice one = {.cells = 2, .ask = 1, .focus = 1, .epsilon = epsilon};
  const CellChoice several = {.cells = 8, .ask = 3, .focus = 2, .epsilon = epsilon};
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism, CellMechanism::Create(one));
  Subject subject{.mechanism = "cells", .claim = mechanism.guarantee()};
  for (const CellChoice& choice : {one, several}) {
    PM_ASSIGN_OR_RETURN(subject.attacks.emplace_back(), MakeChoiceAttack(choice, choose));
  }
  return subject;
}

absl::StatusOr<std::vector<int64_t>> ChooseRequestCells(const CellScheme& scheme,
                                                        const Eigen::RowVectorXf& features,
                                                        const CellCost& cost, BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const CellDraw draw, PrepareCellDraw(scheme, features, cost));
  return draw.mechanism.Choose(draw.best, bits);
}

absl::StatusOr<Subject> AttackCellRequest(double epsilon, const RequestCellsFn& request_cells) {
  const CellCost cost{.epsilon = epsilon};
  Subject subject{.mechanism = "cells request"};
  for (const int32_t classes : {2, 8}) {
    PM_ASSIGN_OR_RETURN(subject.attacks.emplace_back(),
                        MakeRequestAttack(classes, cost, request_cells));
  }
  PM_ASSIGN_OR_RETURN(const CellScheme scheme, MakeOneCellPerClassScheme(2));
  PM_ASSIGN_OR_RETURN(const CellDraw draw, PrepareCellDraw(scheme, MakeClassTarget(0, 2), cost));
  subject.claim = draw.mechanism.guarantee();
  return subject;
}

}  // namespace privatemail::client::audit
