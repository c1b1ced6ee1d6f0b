// Retrieval for 100 slots of 8 neighbours, each in one thread; baseline: FAISS's flat index.
//
// usage: index_benchmark ITEMS DIM
//
// Data: 100 classes, each a cloud, like the coordinates of an embedding. Beyond four columns the
// approximate index is compared as well. Exits with 1 if the exact index differs from a scan in
// double. Times are processor seconds of the calling thread; set OPENBLAS_NUM_THREADS=1.
#include <faiss/IndexFlat.h>
#include <omp.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "common/index/approximate_index.h"
#include "common/index/exact_index.h"

namespace privatemail {
namespace {

constexpr int kSlots = 100;
constexpr int kClasses = 100;
constexpr int kCount = 8;
constexpr int kRuns = 5;

using Results = std::vector<std::vector<Neighbor>>;

// Centres of classes on a sphere of length sqrt(dim), as wide clouds around them.
class Cloud {
 public:
  explicit Cloud(Eigen::Index dim)
      : centres_(Matrix::NullaryExpr(kClasses, dim, [&] { return normal_(bits_); })) {}

  Matrix Draw(Eigen::Index rows) {
    Matrix points(rows, centres_.cols());
    for (Eigen::Index i = 0; i < rows; ++i) {
      for (Eigen::Index c = 0; c < points.cols(); ++c) {
        points(i, c) = centres_(i % kClasses, c) + .05 * normal_(bits_);
      }
    }
    return points;
  }

 private:
  std::mt19937 bits_{1};
  std::normal_distribution<double> normal_;
  Matrix centres_;
};

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double ProcessorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The median of some runs.
template <typename Task>
double SecondsOf(Task task) {
  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) {
    const double start = ProcessorSeconds();
    task();
    seconds.push_back(ProcessorSeconds() - start);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

double FlatSeconds(const FloatMatrix& points, const FloatMatrix& queries) {
  faiss::IndexFlatL2 index(points.cols());
  index.add(points.rows(), points.data());
  std::vector<float> distances(kSlots * kCount);
  std::vector<faiss::Index::idx_t> rows(kSlots * kCount);
  return SecondsOf(
      [&] { index.search(kSlots, queries.data(), kCount, distances.data(), rows.data()); });
}

// Every distance in double, sorted: nothing of ours in it.
Results PlainScan(const Matrix& queries, const Matrix& points) {
  Results nearest;
  std::vector<int64_t> rows(static_cast<size_t>(points.rows()));
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    const Vector distances = (points.rowwise() - queries.row(q)).rowwise().squaredNorm();
    std::iota(rows.begin(), rows.end(), 0);
    std::partial_sort(rows.begin(), rows.begin() + kCount, rows.end(), [&](int64_t a, int64_t b) {
      return std::make_pair(distances[a], a) < std::make_pair(distances[b], b);
    });
    std::vector<Neighbor>& of_query = nearest.emplace_back();
    for (int i = 0; i < kCount; ++i) {
      of_query.push_back({rows[static_cast<size_t>(i)], distances[rows[static_cast<size_t>(i)]]});
    }
  }
  return nearest;
}

bool Identical(const Results& a, const Results& b) {
  for (size_t q = 0; q < a.size(); ++q) {
    for (size_t i = 0; i < a[q].size(); ++i) {
      if (a[q][i].row != b[q][i].row) return false;
    }
  }
  return true;
}

// The share of the nearest that was found.
double Recall(const Results& found, const Results& nearest) {
  int hits = 0;
  for (size_t q = 0; q < nearest.size(); ++q) {
    for (const Neighbor& neighbor : found[q]) {
      hits += std::any_of(nearest[q].begin(), nearest[q].end(),
                          [&](const Neighbor& one) { return one.row == neighbor.row; });
    }
  }
  return hits / static_cast<double>(kSlots * kCount);
}

void CompareApproximate(const ExactIndex& exact, const Matrix& queries, double flat_seconds,
                        double exact_seconds, const Results& nearest) {
  const auto start = std::chrono::steady_clock::now();
  const auto index = ApproximateIndex::Make(exact, .99);
  const double build = SecondsSince(start);
  if (index == nullptr) {
    std::printf("approximate index: recall@%d .99 is not reached\n", kCount);
    return;
  }
  Results found;
  const double seconds = SecondsOf([&] { found = index->Search(queries, kCount); });
  const ApproximateIndex::Quality& quality = index->quality();
  std::printf(
      "  IVF of %d lists, %d probed: %.3f ms: %.1f times IndexFlatL2, %.1f times the exact index; "
      "recall@%d %.4f of the slots, %.4f of its own %d queries; made in %.1f s\n",
      static_cast<int>(quality.lists), static_cast<int>(quality.probed), 1e3 * seconds,
      flat_seconds / seconds, exact_seconds / seconds, kCount, Recall(found, nearest),
      quality.recall, ApproximateIndex::kRecallQueries, build);
}

int Main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int items = std::atoi(argv[1]), dim = std::atoi(argv[2]);
  omp_set_num_threads(1);
  Cloud cloud(dim);
  const Matrix points = cloud.Draw(items);
  const Matrix queries = cloud.Draw(kSlots);

  const auto start = std::chrono::steady_clock::now();
  const ExactIndex index(points);
  const double build = SecondsSince(start);
  Results found;
  const double ours = SecondsOf([&] { found = index.Search(queries, kCount); });
  const bool identical = Identical(found, PlainScan(queries, points));
  const double flat = FlatSeconds(points.cast<float>(), queries.cast<float>());
  std::printf(
      "retrieval, n %d, k %d, %d slots, %d neighbours: IndexFlatL2 %.1f ms, exact index %.3f ms: "
      "%.3g times; made in %.2f s; rows %s a scan's in double\n",
      items, dim, kSlots, kCount, 1e3 * flat, 1e3 * ours, flat / ours, build,
      identical ? "equal" : "DIFFER FROM");
  if (!index.has_r_tree()) CompareApproximate(index, queries, flat, ours, found);
  return identical ? 0 : 1;
}

}  // namespace
}  // namespace privatemail

int main(int argc, char** argv) { return privatemail::Main(argc, argv); }
