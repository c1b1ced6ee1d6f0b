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

// The cells asked for hold all that they can of the one query's best, the first ones, and of the
// other's, which come next, as few as they must.
bool PointsToTheFirst(const CellChoice& choice, const std::vector<int64_t>& asked) {
  const auto count = [&](int64_t from) {
    return std::count_if(asked.begin(), asked.end(),
                         [&](int64_t cell) { return cell >= from && cell < from + choice.focus; });
  };
  return count(0) == std::min(choice.focus, choice.ask) && count(choice.focus) == 0;
}

absl::StatusOr<Attack> On(const CellChoice& choice, const ChooseFn& choose) {
  PM_ASSIGN_OR_RETURN(CellMechanism made, CellMechanism::Create(choice));
  const auto mechanism = std::make_shared<const CellMechanism>(std::move(made));
  return Attack{
      .what = absl::StrCat(choice.ask, " of ", choice.cells, " cells, drawn to ", choice.focus,
                           " or to as many others: all that can be of the one, none of the other"),
      .hits = [mechanism, choose](Neighbour neighbour,
                                  int64_t releases) -> absl::StatusOr<int64_t> {
        const CellChoice& of = mechanism->choice();
        const std::vector<int64_t> best =
            CellsFrom(neighbour == Neighbour::kOne ? 0 : of.focus, of.focus);
        SecureBits bits;
        int64_t hits = 0;
        for (int64_t i = 0; i < releases; ++i) {
          PM_ASSIGN_OR_RETURN(const std::vector<int64_t> asked, choose(*mechanism, best, bits));
          hits += PointsToTheFirst(of, asked) ? 1 : 0;
        }
        return hits;
      }};
}

absl::StatusOr<Attack> OnRequest(int32_t classes, const CellCost& cost, const AskFn& ask) {
  PM_ASSIGN_OR_RETURN(CellScheme made, SchemeWithACellAClass(classes));
  const auto scheme = std::make_shared<const CellScheme>(std::move(made));
  return Attack{
      .what = absl::StrCat("a request for one of ", classes, " cells, one for each class, names ",
                           "the class of the one target or of another"),
      .hits = [=](Neighbour neighbour, int64_t releases) -> absl::StatusOr<int64_t> {
        const Eigen::RowVectorXf target =
            TargetOfClass(neighbour == Neighbour::kOne ? 0 : 1, classes);
        SecureBits bits;
        int64_t hits = 0;
        for (int64_t i = 0; i < releases; ++i) {
          PM_ASSIGN_OR_RETURN(const std::vector<int64_t> asked, ask(*scheme, target, cost, bits));
          hits += asked.front() == 0 ? 1 : 0;
        }
        return hits;
      },
      .most_releases = 200'000};  // each makes its mechanism anew
}

}  // namespace

absl::StatusOr<Subject> AttackCells(double epsilon) {
  return AttackCells(epsilon, [](const CellMechanism& mechanism, const std::vector<int64_t>& best,
                                 BitSource& bits) { return mechanism.Choose(best, bits); });
}

absl::StatusOr<Subject> AttackCells(double epsilon, const ChooseFn& choose) {
  const CellChoice one = {.cells = 2, .ask = 1, .focus = 1, .epsilon = epsilon};
  const CellChoice several = {.cells = 8, .ask = 3, .focus = 2, .epsilon = epsilon};
  Subject subject{.mechanism = "cells", .claim = {}, .attacks = {}};
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism, CellMechanism::Create(one));
  subject.claim = mechanism.guarantee();
  PM_ASSIGN_OR_RETURN(subject.attacks.emplace_back(), On(one, choose));
  PM_ASSIGN_OR_RETURN(subject.attacks.emplace_back(), On(several, choose));
  return subject;
}

absl::StatusOr<CellScheme> SchemeWithACellAClass(int32_t classes) {
  Anchors anchors{FloatMatrix(2 * classes, classes), {}};
  CellPartition partition{.cells = classes, .cell_of_anchor = {}};
  for (int32_t i = 0; i < 2 * classes; ++i) {
    const int32_t label = i % classes;
    anchors.features.row(i) = TargetOfClass(label, classes);
    anchors.features(i, (label + 1) % classes) = i < classes ? .1F : -.1F;
    anchors.labels.push_back(label);
    partition.cell_of_anchor.push_back(label);
  }
  PM_ASSIGN_OR_RETURN(PublicParameters parameters,
                      MakePublicParameters("audit", EmbeddingSettings{}, anchors, {}, "vectors",
                                           {std::move(partition)}, CellCode::kFloat16));
  return CellScheme::Create(std::move(parameters), anchors);
}

Eigen::RowVectorXf TargetOfClass(int32_t label, int32_t classes) {
  return Eigen::RowVectorXf::Unit(classes, label);
}

absl::StatusOr<std::vector<int64_t>> AskForCells(const CellScheme& scheme,
                                                 const Eigen::RowVectorXf& features,
                                                 const CellCost& cost, BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const CellDraw draw, PrepareDraw(scheme, features, cost));
  return draw.mechanism.Choose(draw.best, bits);
}

absl::StatusOr<Subject> AttackCellRequest(double epsilon, const AskFn& ask) {
  const CellCost cost{.epsilon = epsilon};
  Subject subject{.mechanism = "cells request", .claim = {}, .attacks = {}};
  for (const int32_t classes : {2, 8}) {
    PM_ASSIGN_OR_RETURN(subject.attacks.emplace_back(), OnRequest(classes, cost, ask));
  }
  PM_ASSIGN_OR_RETURN(const CellScheme scheme, SchemeWithACellAClass(2));
  PM_ASSIGN_OR_RETURN(const CellDraw draw, PrepareDraw(scheme, TargetOfClass(0, 2), cost));
  subject.claim = draw.mechanism.guarantee();
  return subject;
}

}  // namespace privatemail::client::audit
