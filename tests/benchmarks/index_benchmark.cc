// Retrieval for 100 slots of 8 neighbours, each in one thread; baseline: FAISS's flat index.
//
// usage: index_benchmark ITEMS DIM
//
// Data: 100 classes, each a cloud. Beyond four columns also an embedding made by EmbedRows, uniform
// noise, and slots that noise moved between the classes. Exits with 1 if the
// exact index differs from a scan in double. Times are medians of processor seconds of the calling
// thread, in turn with the baseline; set OPENBLAS_NUM_THREADS=1.
#include <faiss/IndexFlat.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "common/embedding/default_settings.h"
#include "common/embedding/embed_rows.h"
#include "common/index/exact_index.h"
#include "tests/benchmarks/measure.h"

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

  Matrix Draw(Eigen::Index rows, double stddev = .05) {
    Matrix points(rows, centres_.cols());
    for (Eigen::Index i = 0; i < rows; ++i) {
      for (Eigen::Index c = 0; c < points.cols(); ++c) {
        points(i, c) = centres_(i % kClasses, c) + stddev * normal_(bits_);
      }
    }
    return points;
  }

 private:
  std::mt19937 bits_{1};
  std::normal_distribution<double> normal_;
  Matrix centres_;
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

// The medians of both tasks, which take turns.
template <typename One, typename Other>
std::pair<double, double> SecondsOf(One one, Other other) {
  std::vector<double> of_one, of_other;
  for (int run = 0; run < kRuns; ++run) {
    const double start = ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID);
    one();
    const double between = ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID);
    other();
    of_one.push_back(between - start);
    of_other.push_back(ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID) - between);
  }
  return {Median(of_one), Median(of_other)};
}

// Whether the rows found are those of all distances in double, sorted: nothing of ours in it.
bool IsExact(const Results& found, const Matrix& queries, const Matrix& points) {
  std::vector<int64_t> rows(static_cast<size_t>(points.rows()));
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    const Vector distances = (points.rowwise() - queries.row(q)).rowwise().squaredNorm();
    std::iota(rows.begin(), rows.end(), 0);
    std::partial_sort(rows.begin(), rows.begin() + kCount, rows.end(), [&](int64_t a, int64_t b) {
      return std::make_pair(distances[a], a) < std::make_pair(distances[b], b);
    });
    const std::vector<Neighbor>& of_query = found[static_cast<size_t>(q)];
    if (!std::equal(of_query.begin(), of_query.end(), rows.begin(), rows.begin() + kCount,
                    [](const Neighbor& one, int64_t row) { return one.row == row; })) {
      return false;
    }
  }
  return true;
}

// An index of items beside FAISS's flat one.
class Comparison {
 public:
  Comparison(const char* items, const Matrix& points)
      : items_(items), start_(std::chrono::steady_clock::now()), index_(points) {
    std::printf("retrieval, n %d, k %d, %d slots, %d neighbours, %s: exact index made in %.2f s\n",
                static_cast<int>(points.rows()), static_cast<int>(points.cols()), kSlots, kCount,
                items_, SecondsSince(start_));
    const FloatMatrix floats = points.cast<float>();
    flat_.add(floats.rows(), floats.data());
  }

  const ExactIndex& index() const { return index_; }

  // Whether the rows equal those of a scan in double.
  bool Exact(const char* what, const Matrix& queries) {
    Results found;
    const auto [ours, flat] = SecondsOf([&] { found = index_.Search(queries, kCount); },
                                        [&] { SearchFlat(queries.cast<float>()); });
    const bool identical = IsExact(found, queries, index_.points());
    std::printf(
        "  %s, %s: IndexFlatL2 %.1f ms, exact index %.3f ms: %.3g times; rows %s a scan's in "
        "double\n",
        items_, what, 1e3 * flat, 1e3 * ours, flat / ours, identical ? "equal" : "DIFFER FROM");
    return identical;
  }

 private:
  void SearchFlat(const FloatMatrix& queries) const {
    std::vector<float> distances(kSlots * kCount);
    std::vector<faiss::Index::idx_t> rows(kSlots * kCount);
    flat_.search(kSlots, queries.data(), kCount, distances.data(), rows.data());
  }

  const char* items_;
  std::chrono::steady_clock::time_point start_;
  ExactIndex index_;
  faiss::IndexFlatL2 flat_{index_.points().cols()};
};

// Slots a quarter of the way from an item to one of another class.
Matrix Moved(const Matrix& points, const Matrix& queries) {
  Matrix moved = queries;
  for (Eigen::Index q = 0; q < moved.rows(); ++q) {
    moved.row(q) = .75 * queries.row(q) + .25 * points.row(7919 * q % points.rows());
  }
  return moved;
}

// Items and, as its last kSlots rows, slots: an embedding with the default settings of clusters
// about as wide as they are apart.
Matrix Embedded(int items, int dim) {
  constexpr int kFeatures = 32;
  Cloud cloud(kFeatures);
  const FloatMatrix features = cloud.Draw(items + kSlots, .7).cast<float>();
  std::vector<int32_t> labels;
  for (int row = 0; row < items + kSlots; ++row) labels.push_back(row % kClasses);
  const Anchors anchors = {features.topRows(10 * kClasses),
                           {labels.begin(), labels.begin() + 10 * kClasses}};
  EmbeddingSettings settings = DefaultSettings(labels);
  settings.embedding_dim = dim;
  const auto parameters = MakePublicParameters("4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5", settings,
                                               anchors, {}, "vectors");
  const FloatMatrix none(0, kFeatures);
  auto points = UnitPoints::Create(features, none);
  return EmbedRows(parameters.value(), std::make_shared<UnitPoints>(std::move(points).value()),
                   labels, nullptr)
      .value()
      .coordinates;
}

int Main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int items = std::atoi(argv[1]), dim = std::atoi(argv[2]);
  omp_set_num_threads(1);
  Cloud cloud(dim);
  const Matrix points = cloud.Draw(items);
  const Matrix slots = cloud.Draw(kSlots);
  Comparison clouds("clouds", points);
  bool exact = clouds.Exact("slots", slots);
  if (clouds.index().IsFast()) return exact ? 0 : 1;
  const Matrix moved = Moved(points, slots);
  exact &= clouds.Exact("moved slots", moved);

  const Matrix embedded = Embedded(items, dim);
  Comparison embedding("embedding", embedded.topRows(items));
  const Matrix embedded_slots = embedded.bottomRows(kSlots);
  exact &= embedding.Exact("slots", embedded_slots);
  const Matrix embedded_moved = Moved(embedded, embedded_slots);
  exact &= embedding.Exact("moved slots", embedded_moved);

  const Matrix noise = Matrix::Random(items + kSlots, dim);
  exact &= Comparison("noise", noise.topRows(items)).Exact("slots", noise.bottomRows(kSlots));
  return exact ? 0 : 1;
}

}  // namespace
}  // namespace privatemail

int main(int argc, char** argv) { return privatemail::Main(argc, argv); }
