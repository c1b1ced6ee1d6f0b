#include "common/index/k_means.h"

#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>
#include <faiss/utils/distances.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

// Functions of the OpenMP standard. omp.h belongs to a compiler, and with clang FAISS was built by
// another one.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
// OpenBLAS's; null with another BLAS.
void openblas_set_num_threads(int threads) __attribute__((weak));
}

namespace privatemail {
namespace {

constexpr Eigen::Index kPointsPerCall = 1 << 14;

// Limits FAISS to the calling thread: OpenMP threads would stay, and waiting threads of OpenBLAS
// spin. Nothing else uses OpenBLAS's threads, so their number is not restored.
class OneThread {
 public:
  OneThread() : former_(omp_get_max_threads()) {
    omp_set_num_threads(1);
    static std::once_flag once;  // not while another thread multiplies
    std::call_once(once, [] {
      if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
    });
  }
  ~OneThread() { omp_set_num_threads(former_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int former_;
};

struct Cancelled {};

// faiss::Clustering assigns all points in one call and cannot be stopped. Same results: blocks are
// multiples of the points that FAISS multiplies at once, but for the last, which is not small,
// because FAISS computes few points in another way.
class CancellableAssigner final : public faiss::IndexFlatL2 {
 public:
  CancellableAssigner(Eigen::Index dim, const CancelledFunction& cancelled)
      : IndexFlatL2(dim), cancelled_(cancelled) {}

  // Throws Cancelled.
  void search(idx_t n, const float* points, idx_t k, float* distances, idx_t* rows,
              const faiss::SearchParameters* parameters) const override {
    constexpr idx_t kPoints = 4096;
    for (idx_t begin = 0; begin < n;) {
      if (cancelled_ && cancelled_()) throw Cancelled();
      const idx_t count = n - begin < 2 * kPoints ? n - begin : kPoints;
      IndexFlatL2::search(count, points + begin * d, k, distances + begin * k, rows + begin * k,
                          parameters);
      begin += count;
    }
  }

 private:
  const CancelledFunction& cancelled_;
};

}  // namespace

FloatMatrix KMeans(const FloatMatrix& points, int64_t count, const KMeansEffort& effort,
                   const CancelledFunction& cancelled) {
  const OneThread one_thread;
  faiss::ClusteringParameters parameters;
  parameters.niter = effort.iterations;
  parameters.min_points_per_centroid = 1;  // otherwise it prints a warning
  parameters.max_points_per_centroid = effort.points_per_centroid;
  faiss::Clustering clustering(static_cast<int>(points.cols()), static_cast<int>(count),
                               parameters);
  CancellableAssigner assigner(points.cols(), cancelled);
  try {
    clustering.train(points.rows(), points.data(), assigner);
  } catch (const Cancelled&) {
    return FloatMatrix::Zero(count, points.cols());
  }
  return Eigen::Map<const FloatMatrix>(clustering.centroids.data(), count, points.cols());
}

std::vector<int64_t> NearestCentroids(const FloatMatrix& points, const FloatMatrix& centroids,
                                      const std::atomic<bool>* stopped) {
  const OneThread one_thread;
  faiss::IndexFlatL2 assigner(points.cols());
  assigner.add(centroids.rows(), centroids.data());
  std::vector<int64_t> nearest(static_cast<size_t>(points.rows()));
  for (Eigen::Index begin = 0; begin < points.rows(); begin += kPointsPerCall) {
    if (stopped != nullptr && *stopped) break;
    assigner.assign(std::min(kPointsPerCall, points.rows() - begin), points.row(begin).data(),
                    nearest.data() + begin);
  }
  return nearest;
}

ItemCells FindItemCells(const FloatMatrix& items, const FloatMatrix& centroids,
                        const std::atomic<bool>* stopped) {
  ItemCells found{.cells = NearestCentroids(items, centroids, stopped), .squared_distances = {}};
  if (stopped != nullptr && *stopped) return found;
  found.squared_distances.reserve(found.cells.size());
  for (size_t item = 0; item < found.cells.size(); ++item) {
    found.squared_distances.push_back(
        (items.row(static_cast<Eigen::Index>(item)) - centroids.row(found.cells[item]))
            .squaredNorm());
  }
  return found;
}

std::vector<std::vector<int64_t>> NearestItems(const FloatMatrix& queries,
                                               const FloatMatrix& points, int64_t count,
                                               const std::atomic<bool>& stopped) {
  constexpr Eigen::Index kQueriesPerCall = 64;
  const OneThread one_thread;
  const auto wanted = static_cast<size_t>(std::min<int64_t>(count, points.rows()));
  const auto dim = static_cast<size_t>(points.cols());
  std::vector<std::vector<int64_t>> nearest(static_cast<size_t>(queries.rows()));
  std::vector<float> distances(kQueriesPerCall * wanted);
  std::vector<int64_t> rows(kQueriesPerCall * wanted);
  for (Eigen::Index begin = 0; begin < queries.rows() && !stopped; begin += kQueriesPerCall) {
    const Eigen::Index some = std::min(kQueriesPerCall, queries.rows() - begin);
    // The search of IndexFlatL2, without its copy of all points.
    faiss::knn_L2sqr(queries.row(begin).data(), points.data(), dim, static_cast<size_t>(some),
                     static_cast<size_t>(points.rows()), wanted, distances.data(), rows.data());
    for (Eigen::Index query = 0; query < some; ++query) {
      const auto first = rows.begin() + query * static_cast<Eigen::Index>(wanted);
      nearest[static_cast<size_t>(begin + query)].assign(first,
                                                         first + static_cast<Eigen::Index>(wanted));
    }
  }
  return nearest;
}

namespace {

using Rows = std::vector<Eigen::Index>;
using Nearest = std::vector<std::vector<int64_t>>;

constexpr int64_t kProbed = 32;
// Average queries of a list, enough for matrix products to pay.
constexpr int64_t kQueriesOfList = 32;
// With fewer lists, the probed ones would be most of the gallery.
static_assert(kManyQueries / kQueriesOfList >= 4 * kProbed);

// Removes the query itself, or else the farthest: searches return one row too many.
void RemoveQuery(int64_t query, std::vector<int64_t>* nearest) {
  if (nearest->empty()) return;  // stopped
  const auto self = std::find(nearest->begin(), nearest->end(), query);
  nearest->erase(self != nearest->end() ? self : nearest->end() - 1);
}

Nearest SearchAll(const FloatMatrix& items, const Rows& queries, int64_t count,
                  const std::atomic<bool>& stopped) {
  Nearest nearest = NearestItems(items(queries, Eigen::all), items, count + 1, stopped);
  for (size_t query = 0; query < nearest.size(); ++query)
    RemoveQuery(queries[query], &nearest[query]);
  return nearest;
}

// For each list the indices into `rows` of its rows.
std::vector<Rows> ByList(const Rows& rows, const std::vector<int64_t>& list_of_item,
                         int64_t lists) {
  std::vector<Rows> numbers(static_cast<size_t>(lists));
  for (size_t number = 0; number < rows.size(); ++number) {
    const int64_t list = list_of_item[static_cast<size_t>(rows[number])];
    numbers[static_cast<size_t>(list)].push_back(static_cast<Eigen::Index>(number));
  }
  return numbers;
}

// matrix(rows, Eigen::all), copied row by row.
FloatMatrix RowsOf(const FloatMatrix& matrix, const Rows& rows) {
  FloatMatrix some(std::ssize(rows), matrix.cols());
  for (Eigen::Index row = 0; row < some.rows(); ++row) {
    some.row(row) = matrix.row(rows[static_cast<size_t>(row)]);
  }
  return some;
}

Rows Picked(const Rows& from, const Rows& numbers) {
  Rows picked;
  for (const Eigen::Index number : numbers) picked.push_back(from[static_cast<size_t>(number)]);
  return picked;
}

// All queries of a list are compared with the same items.
Nearest SearchLists(const FloatMatrix& items, const Rows& queries, int64_t count,
                    const std::atomic<bool>& stopped) {
  const int64_t lists = std::min(static_cast<int64_t>(std::sqrt(items.rows())),
                                 static_cast<int64_t>(std::ssize(queries)) / kQueriesOfList);
  const FloatMatrix centroids = KMeans(items, lists, kRoughKMeans);
  const std::vector<int64_t> list_of_item = NearestCentroids(items, centroids, &stopped);
  const Nearest probed = NearestItems(centroids, centroids, kProbed, stopped);
  Nearest nearest(queries.size());
  if (stopped) return nearest;
  Rows all(static_cast<size_t>(items.rows()));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<Rows> items_in = ByList(all, list_of_item, lists);
  const std::vector<Rows> queries_in = ByList(queries, list_of_item, lists);
  for (size_t list = 0; list < queries_in.size() && !stopped; ++list) {
    Rows near;
    for (const int64_t one : probed[list]) {
      const Rows& some = items_in[static_cast<size_t>(one)];
      near.insert(near.end(), some.begin(), some.end());
    }
    const FloatMatrix near_items = RowsOf(items, near);
    const Rows list_queries = Picked(queries, queries_in[list]);
    const Nearest found = NearestItems(RowsOf(items, list_queries), near_items, count + 1, stopped);
    for (size_t i = 0; i < found.size(); ++i) {
      std::vector<int64_t>& rows = nearest[static_cast<size_t>(queries_in[list][i])];
      for (const int64_t place : found[i]) rows.push_back(near[static_cast<size_t>(place)]);
      RemoveQuery(list_queries[i], &rows);
    }
  }
  return nearest;
}

}  // namespace

std::vector<std::vector<int64_t>> NearestOthers(const FloatMatrix& items, const Rows& queries,
                                                int64_t count, const std::atomic<bool>& stopped) {
  const bool many = items.rows() >= kLargeGallery && std::ssize(queries) >= kManyQueries;
  return many ? SearchLists(items, queries, count, stopped)
              : SearchAll(items, queries, count, stopped);
}

}  // namespace privatemail
