#include "server/index/inverted_lists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "server/index/k_means.h"

namespace privatemail {
namespace {

// What the recall of so little costs is measured.
constexpr KMeansEffort kEffort = {.iterations = 8, .points_per_centroid = 64};

// Twice as many lists, of points sampled for each, are four times the work of the k-means.
int64_t ListsFor(Eigen::Index rows) {
  return std::max<int64_t>(1, std::llround(2 * std::sqrt(static_cast<double>(rows))));
}

// Squared distances of the rows of `columns` to a point.
void DistancesTo(const Eigen::VectorXf& point, const Eigen::MatrixXf& columns,
                 Eigen::ArrayXf* distances) {
  *distances = Eigen::ArrayXf::Zero(columns.rows());
  for (Eigen::Index c = 0; c < columns.cols(); ++c) {
    *distances += (columns.col(c).array() - point[c]).square();
  }
}

RowVector CentreOf(const Matrix& points) { return points.colwise().mean(); }

double ScaleOf(const Matrix& points, const RowVector& centre) {
  return (points.rowwise() - centre).cwiseAbs().maxCoeff();
}

}  // namespace

bool InvertedLists::CanHold(const Matrix& points) {
  const RowVector centre = CentreOf(points);
  const double scale = ScaleOf(points, centre);
  return centre.allFinite() && std::isfinite(scale) && std::isfinite(1 / scale);
}

InvertedLists::InvertedLists(const Matrix& points, const std::atomic<bool>* stopped)
    : points_(points), centre_(CentreOf(points)), scale_(ScaleOf(points, centre_)) {
  const FloatMatrix scaled = Scaled();
  const FloatMatrix centroids = KMeans(scaled, ListsFor(points.rows()), kEffort);
  const std::vector<int64_t> list_of_row = NearestCentroids(scaled, centroids, stopped);
  if (stopped != nullptr && *stopped) return;
  centroids_ = centroids;
  Fill(scaled, list_of_row);
}

Eigen::VectorXf InvertedLists::Scaled(const RowVector& point) const {
  return ((point - centre_) / scale_).transpose().cast<float>();
}

FloatMatrix InvertedLists::Scaled() const {
  return ((points_.rowwise() - centre_) / scale_).cast<float>();
}

void InvertedLists::Fill(const FloatMatrix& scaled, const std::vector<int64_t>& list_of_row) {
  starts_.assign(static_cast<size_t>(centroids_.rows()) + 1, 0);
  for (const int64_t list : list_of_row) ++starts_[static_cast<size_t>(list) + 1];
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  std::vector<int64_t> next(starts_.begin(), starts_.end() - 1);
  rows_.resize(list_of_row.size());
  for (size_t row = 0; row < list_of_row.size(); ++row) {
    rows_[static_cast<size_t>(next[static_cast<size_t>(list_of_row[row])]++)] =
        static_cast<int64_t>(row);
  }
  for (int64_t list = 0; list < size(); ++list) {
    const std::vector<int64_t> rows = RowsOf(list);
    Eigen::MatrixXf& copies = copies_.emplace_back(rows.size(), scaled.cols());
    for (size_t i = 0; i < rows.size(); ++i) {
      copies.row(static_cast<Eigen::Index>(i)) = scaled.row(rows[i]);
    }
  }
}

std::vector<int64_t> InvertedLists::RowsOf(int64_t list) const {
  const auto at = static_cast<size_t>(list);
  return {rows_.begin() + starts_[at], rows_.begin() + starts_[at + 1]};
}

std::vector<int64_t> InvertedLists::Nearest(const RowVector& query, int64_t count) const {
  Eigen::ArrayXf distances;
  DistancesTo(Scaled(query), centroids_, &distances);
  std::vector<int64_t> lists(static_cast<size_t>(size()));
  std::iota(lists.begin(), lists.end(), 0);
  const auto nearer = [&](int64_t a, int64_t b) {
    return distances[a] != distances[b] ? distances[a] < distances[b] : a < b;
  };
  const auto end = lists.begin() + std::min(count, size());
  std::partial_sort(lists.begin(), end, lists.end(), nearer);
  lists.erase(end, lists.end());
  return lists;
}

// A scaled coordinate of a point is at most 1, that of the query at most m; copied, both are off by
// 2^-24 (1 + m), and so is their difference, rounded, by no more than 2^-22 (1 + m). Distances are
// off by sqrt(k) times that, and their squares' sum by 2^-24 of itself for each of k + 1
// operations.
void InvertedLists::Scan(int64_t list, const RowVector& query, NearestSoFar* nearest) const {
  const Eigen::VectorXf scaled = Scaled(query);
  Eigen::ArrayXf distances;
  const Eigen::MatrixXf& copies = copies_[static_cast<size_t>(list)];
  DistancesTo(scaled, copies, &distances);
  const auto dim = static_cast<double>(points_.cols());
  const double off = std::sqrt(dim) * std::ldexp(1 + scaled.cwiseAbs().maxCoeff(), -22);
  const double rounding = 1 + (dim + 2) * std::ldexp(1, -23);
  const auto farthest = [&] {
    if (!nearest->full() || nearest->size() == 0) return std::numeric_limits<double>::infinity();
    const double within = std::sqrt(nearest->farthest()) / scale_ + off;
    return within * within * rounding;
  };
  double limit = farthest();
  const int64_t* rows = rows_.data() + starts_[static_cast<size_t>(list)];
  for (Eigen::Index i = 0; i < distances.size(); ++i) {
    if (distances[i] > limit) continue;
    const double* point = points_.data() + rows[i] * points_.cols();
    nearest->Offer({rows[i], SquaredDistance(point, query.data(), points_.cols())});
    limit = farthest();
  }
}

}  // namespace privatemail
