#include "common/index/k_means.h"

#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>
#include <faiss/utils/distances.h>
#include <faiss/utils/random.h>

#include <algorithm>
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

std::vector<Eigen::Index> KMeansSample(Eigen::Index points, int64_t count,
                                       const KMeansEffort& effort) {
  std::vector<Eigen::Index> sample(static_cast<size_t>(points));
  const int64_t most = count * effort.points_per_centroid;
  if (points <= most) {
    std::iota(sample.begin(), sample.end(), 0);
    return sample;
  }
  // As faiss::Clustering, which holds all points.
  std::vector<int> permutation(sample.size());
  faiss::rand_perm(permutation.data(), permutation.size(), faiss::ClusteringParameters().seed);
  return {permutation.begin(), permutation.begin() + most};
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

std::vector<std::vector<NearPoint>> NearestItems(const FloatMatrix& queries,
                                                 const Eigen::Ref<const FloatMatrix>& points,
                                                 int64_t count, const std::atomic<bool>& stopped) {
  constexpr Eigen::Index kQueriesPerCall = 64;
  const OneThread one_thread;
  const auto wanted = static_cast<size_t>(std::min<int64_t>(count, points.rows()));
  const auto dim = static_cast<size_t>(points.cols());
  std::vector<std::vector<NearPoint>> nearest(static_cast<size_t>(queries.rows()));
  std::vector<float> distances(kQueriesPerCall * wanted);
  std::vector<int64_t> rows(kQueriesPerCall * wanted);
  for (Eigen::Index begin = 0; begin < queries.rows() && !stopped; begin += kQueriesPerCall) {
    const Eigen::Index some = std::min(kQueriesPerCall, queries.rows() - begin);
    // The search of IndexFlatL2, without its copy of all points.
    faiss::knn_L2sqr(queries.row(begin).data(), points.data(), dim, static_cast<size_t>(some),
                     static_cast<size_t>(points.rows()), wanted, distances.data(), rows.data());
    for (size_t query = 0; query < static_cast<size_t>(some); ++query) {
      std::vector<NearPoint>& found = nearest[static_cast<size_t>(begin) + query];
      found.reserve(wanted);
      for (size_t i = query * wanted; i < (query + 1) * wanted; ++i) {
        found.push_back({distances[i], rows[i]});
      }
    }
  }
  return nearest;
}

}  // namespace privatemail
