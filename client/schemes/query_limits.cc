#include "client/schemes/query_limits.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/schemes/memory_budget.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/embedding/plan_affinity.h"
#include "common/embedding/tiled_affinity.h"

namespace privatemail::client {
namespace {

// The symbols of the header, as doubles, which do not overflow.
struct Sizes {
  double anchors, feature_dim, rank, classes, embedding_dim, rows, cells, cores;

  explicit Sizes(const PublicParameters& p, int64_t own_columns = 0)
      : anchors(static_cast<double>(p.anchor_count)),
        feature_dim(static_cast<double>(std::max(p.feature_dim, own_columns))),
        rank(std::min(anchors, feature_dim)),
        classes(static_cast<double>(p.slot_labels.size())),
        embedding_dim(p.settings.embedding_dim),
        rows(classes + anchors),
        cells(0),
        cores(std::max(1U, std::thread::hardware_concurrency())) {
    for (const CellPartition& partition : p.cell_partitions) {
      cells += static_cast<double>(partition.cells);
    }
  }
};

double AnchorBytes(const Sizes& s) {
  return s.anchors * (28 * s.feature_dim + 4 * s.embedding_dim + 200) + 200 * s.classes;
}

}  // namespace

double JointQueryMemory(const PublicParameters& parameters, int64_t own_columns) {
  const Sizes s(parameters, own_columns);
  const auto graph = static_cast<double>(MaxAffinityBytes(
      static_cast<Eigen::Index>(s.rows), static_cast<Eigen::Index>(s.embedding_dim)));
  const double cached = std::min<double>(s.anchors, TiledAffinity::kMaxCachedRows);
  return AnchorBytes(s) + 4 * cached * cached + graph +
         8 * s.rows * s.embedding_dim * (14 + s.cores);
}

double CellQueryMemory(const PublicParameters& parameters) {
  const Sizes s(parameters);
  return AnchorBytes(s) + 8 * s.cells * s.feature_dim;
}

absl::Status CheckQueryMemory(const PublicParameters& parameters, double bytes,
                              const ClientLimits& limits) {
  return CheckMemory(
      bytes,
      absl::StrFormat("a query with the collection's anchor_count %d, feature_dim %d, "
                      "embedding_dim %d, steps %d and %d classes",
                      parameters.anchor_count, parameters.feature_dim,
                      parameters.settings.embedding_dim, parameters.settings.steps,
                      parameters.slot_labels.size()),
      limits.max_memory);
}

ComputingDeadline::ComputingDeadline(absl::string_view what, const ClientLimits& limits)
    : what_(what), limit_(limits.max_computing) {}

absl::Status ComputingDeadline::Check() const {
  if (computed_.Elapsed() < limit_) return absl::OkStatus();
  return FieldError(absl::StatusCode::kDeadlineExceeded, "max_computing",
                    absl::StrCat("longer for ", what_, " with the sizes of this collection"),
                    absl::FormatDuration(limit_));
}

WorkObserver ComputingDeadline::work() const {
  if (limit_ == absl::InfiniteDuration()) return nullptr;
  return [deadline = *this] { return deadline.Check(); };
}

ProductObserver ComputingDeadline::products() const {
  if (limit_ == absl::InfiniteDuration()) return nullptr;
  return [deadline = *this](double) { return deadline.Check(); };
}

StepObserver ComputingDeadline::steps() const {
  if (limit_ == absl::InfiniteDuration()) return nullptr;
  return [deadline = *this](double, int) { return deadline.Check(); };
}

absl::Status CheckRanking(const PublicParameters& parameters, int64_t columns,
                          const ClientLimits& limits) {
  constexpr double kPerSecond = 2e10;  // multiplications of one fast core
  const Sizes s(parameters, columns);
  const double bytes = AnchorBytes(s) + 8 * (s.anchors * s.feature_dim + 2 * s.anchors * s.rank +
                                             2 * s.feature_dim * s.rank + 3 * s.rank * s.rank +
                                             std::min(2000 * s.anchors, 1e7));
  PM_RETURN_IF_ERROR(CheckQueryMemory(parameters, bytes, limits));
  // One product, and the eigenvectors of a symmetric matrix.
  const double seconds =
      (s.anchors * s.feature_dim * s.rank + 9 * s.rank * s.rank * s.rank) / kPerSecond;
  if (absl::Seconds(seconds) <= limits.max_computing) return absl::OkStatus();
  return FieldError(
      absl::StatusCode::kDeadlineExceeded, "max_computing",
      absl::StrCat("longer for ranking the classes, with anchor_count ", parameters.anchor_count,
                   " and feature_dim ", columns, ", unless the target's label is given"),
      absl::FormatDuration(limits.max_computing));
}

}  // namespace privatemail::client
