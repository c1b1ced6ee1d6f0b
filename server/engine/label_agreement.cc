#include "server/engine/label_agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_format.h"
#include "common/base/matrix.h"
#include "common/base/status_macros.h"
#include "common/base/stratified_sample.h"

namespace privatemail::server {
namespace {

// Few, so that a build takes hardly longer.
constexpr int64_t kMaxAnchors = 128;
constexpr int64_t kMinItems = 2000;
constexpr int64_t kItemsPerAnchor = 2;
constexpr Eigen::Index kBlockRows = 1024;

absl::StatusOr<Matrix> ReadRows(const PointSource& points, const Eigen::Index* rows,
                                Eigen::Index count) {
  Matrix read(count, points.cols());
  Matrix row(1, points.cols());
  for (Eigen::Index i = 0; i < count; ++i) {
    PM_RETURN_IF_ERROR(points.Read(rows[i], &row));
    read.row(i) = row;
  }
  return read;
}

// For each query (unit rows of points, numbered by `queries`) the nearest of `rows` but itself. By
// one matrix product a block, several times as fast as NearestRows.
absl::StatusOr<std::vector<Eigen::Index>> NearestRow(const PointSource& points,
                                                     const std::vector<Eigen::Index>& queries,
                                                     const std::vector<Eigen::Index>& rows,
                                                     const WorkObserver& observer) {
  PM_ASSIGN_OR_RETURN(const Matrix queried, ReadRows(points, queries.data(), std::ssize(queries)));
  std::vector<Eigen::Index> nearest(queries.size(), -1);
  Vector best = Vector::Constant(queried.rows(), -std::numeric_limits<double>::infinity());
  for (Eigen::Index first = 0; first < std::ssize(rows); first += kBlockRows) {
    if (observer) PM_RETURN_IF_ERROR(observer());
    const Eigen::Index count = std::min<Eigen::Index>(kBlockRows, std::ssize(rows) - first);
    PM_ASSIGN_OR_RETURN(const Matrix block, ReadRows(points, rows.data() + first, count));
    const Matrix products = queried * block.transpose();
    for (Eigen::Index q = 0; q < products.rows(); ++q) {
      for (Eigen::Index i = 0; i < count; ++i) {
        const Eigen::Index row = rows[static_cast<size_t>(first + i)];
        if (row == queries[static_cast<size_t>(q)] || !(products(q, i) > best[q])) continue;
        best[q] = products(q, i);
        nearest[static_cast<size_t>(q)] = row;
      }
    }
  }
  return nearest;
}

}  // namespace

absl::StatusOr<LabelAgreement> CompareLabels(const PointSource& points,
                                             const std::vector<int32_t>& item_labels,
                                             const std::vector<int32_t>& anchor_labels,
                                             const WorkObserver& observer) {
  const int64_t items = std::ssize(item_labels);
  const int64_t anchors = std::ssize(anchor_labels);
  std::map<int32_t, double> share;  // of the items, per label
  for (const int32_t label : item_labels) share[label] += 1 / static_cast<double>(items);
  const auto label_of = [&](Eigen::Index row) {
    return row < items ? item_labels[static_cast<size_t>(row)]
                       : anchor_labels[static_cast<size_t>(row - items)];
  };

  std::vector<Eigen::Index> all_anchors;
  for (int64_t i = 0; i < anchors; ++i) all_anchors.push_back(items + i);
  std::vector<Eigen::Index> compared;
  for (const Eigen::Index i : StratifiedSample(anchors, kMaxAnchors)) {
    if (share.contains(label_of(items + i))) compared.push_back(items + i);
  }
  LabelAgreement agreement{.anchors = std::ssize(compared)};
  if (compared.empty()) return agreement;
  PM_ASSIGN_OR_RETURN(
      const std::vector<Eigen::Index> nearest_item,
      NearestRow(points, compared,
                 StratifiedSample(items, std::max(kMinItems, kItemsPerAnchor * anchors)),
                 observer));
  PM_ASSIGN_OR_RETURN(const std::vector<Eigen::Index> nearest_anchor,
                      NearestRow(points, compared, all_anchors, observer));
  const double weight = 1 / static_cast<double>(compared.size());
  for (size_t i = 0; i < compared.size(); ++i) {
    const int32_t label = label_of(compared[i]);
    agreement.by_chance += weight * share.at(label);
    if (label_of(nearest_item[i]) == label) agreement.with_items += weight;
    if (nearest_anchor[i] >= 0 && label_of(nearest_anchor[i]) == label) {
      agreement.among_anchors += weight;
    }
  }
  return agreement;
}

absl::Status CheckLabelsAgree(const LabelAgreement& agreement) {
  const auto [anchors, with_items, among_anchors, by_chance] = agreement;
  const auto error = [n = static_cast<double>(anchors)](double share) {
    return std::sqrt(share * (1 - share) / n);
  };
  const double middle = (by_chance + among_anchors) / 2;
  const bool features_tell = among_anchors > by_chance + 4 * error(by_chance);
  if (!features_tell || !(with_items + 2 * error(middle) < middle)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the items' labels do not seem to mean the anchors' classes: of %d anchors, %.1f %% have a "
      "nearest item of their label and %.1f %% a nearest other anchor of it, and %.1f %% would by "
      "chance; number the items' classes as the anchors' and ingest them again, or build with "
      "accept_misalignment (--accept-misalignment). A former embedding stays",
      anchors, 100 * with_items, 100 * among_anchors, 100 * by_chance));
}

}  // namespace privatemail::server
