#include "client/cli/plan_timing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cli/query_batch.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "common/base/status_macros.h"
#include "common/items/item_code.h"
#include "privatemail/bit_source.h"
#include "privatemail/cell_answer.h"

namespace privatemail::client::cli {
namespace {

constexpr int64_t kMaxRanked = 20'000;
constexpr int64_t kItemsPerMessage = 300;

struct Answer {
  v1::RetrieveCellsRequest request;
  std::vector<v1::RetrieveCellsResponse> messages;
};

Answer MakeAnswer(const PublicParameters& parameters, const Anchors& anchors, int64_t items,
                  int64_t id_bytes) {
  Answer answer;
  answer.request.add_cells(0);
  answer.request.set_items(static_cast<uint32_t>(items));
  for (int64_t item = 0; item < items; ++item) {
    if (item % kItemsPerMessage == 0) answer.messages.emplace_back();
    v1::RetrieveCellsResponse& message = answer.messages.back();
    const auto anchor = static_cast<Eigen::Index>(item % anchors.features.rows());
    message.add_ids(absl::StrFormat("%0*d", static_cast<int>(id_bytes), item));
    message.add_labels(anchors.labels[static_cast<size_t>(anchor)]);
    AppendItemCode(parameters,
                   anchors.features.row(anchor).cast<double>().normalized().cast<float>(),
                   message.mutable_codes());
  }
  return answer;
}

// `trial` returns a status.
template <typename Trial>
absl::StatusOr<double> MedianMilliseconds(const Trial& trial) {
  std::array<double, 5> taken = {};
  for (double& one : taken) {
    const auto start = std::chrono::steady_clock::now();
    PM_RETURN_IF_ERROR(trial());
    one = MillisecondsSince(start);
  }
  std::sort(taken.begin(), taken.end());
  return taken[taken.size() / 2];
}

}  // namespace

absl::StatusOr<PlanTiming> TimePlan(const CellScheme& scheme, const Anchors& anchors,
                                    const QueryPlan& plan, int64_t id_bytes) {
  const PublicParameters& parameters = scheme.parameters();
  SecureBits bits;
  const auto choose = [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(const CellMechanism mechanism,
                        CellMechanism::Create({.cells = plan.cells,
                                               .ask = plan.cost.ask,
                                               .focus = plan.cost.focus,
                                               .epsilon = plan.cost.epsilon}));
    PM_ASSIGN_OR_RETURN(
        const std::vector<int64_t> best,
        scheme.NearestCells(anchors.features.row(0), plan.cost.partition, plan.cost.focus));
    return mechanism.Choose(best, bits).status();
  };
  const int64_t ranked = std::min(plan.items, kMaxRanked);
  const Answer answer = MakeAnswer(parameters, anchors, ranked, id_bytes);
  const CellTarget target{.point = anchors.features.row(0).cast<double>().normalized(),
                          .k = plan.k};
  const auto rank = [&] {
    return ReadCellAnswer(parameters, answer.request, target, answer.messages).status();
  };
  PlanTiming timing;
  PM_ASSIGN_OR_RETURN(timing.choose_ms, MedianMilliseconds(choose));
  PM_ASSIGN_OR_RETURN(timing.rank_ms, MedianMilliseconds(rank));
  timing.rank_ms *= static_cast<double>(plan.items) / static_cast<double>(ranked);
  return timing;
}

}  // namespace privatemail::client::cli
