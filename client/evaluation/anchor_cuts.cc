#include "client/evaluation/anchor_cuts.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/index/k_means.h"

namespace privatemail::client {
namespace {

constexpr double kAddedVariance = .1;  // of the mean variance within classes
constexpr int kBalancingRounds = 10;

// Rows without the mean of their class, and the classes' means, each as often as it has rows.
struct WithinAndBetween {
  Matrix within;
  Matrix between;
};

WithinAndBetween Separate(const Matrix& rows, const std::vector<int32_t>& labels) {
  std::map<int32_t, std::vector<Eigen::Index>> of_class;
  for (size_t row = 0; row < labels.size(); ++row) {
    of_class[labels[row]].push_back(static_cast<Eigen::Index>(row));
  }
  WithinAndBetween parts{rows, Matrix(rows.rows(), rows.cols())};
  const RowVector mean = rows.colwise().mean();
  for (const auto& [label, members] : of_class) {
    const RowVector class_mean = rows(members, Eigen::all).colwise().mean();
    for (const Eigen::Index row : members) {
      parts.within.row(row) -= class_mean;
      parts.between.row(row) = class_mean - mean;
    }
  }
  return parts;
}

// One pair a row and centroid.
struct Distance {
  float squared;
  int64_t row;
  int64_t cell;
};

std::vector<int64_t> AssignBalanced(const FloatMatrix& rows, const FloatMatrix& centroids) {
  std::vector<Distance> distances;
  for (Eigen::Index row = 0; row < rows.rows(); ++row) {
    for (Eigen::Index cell = 0; cell < centroids.rows(); ++cell) {
      distances.push_back({(rows.row(row) - centroids.row(cell)).squaredNorm(), row, cell});
    }
  }
  std::sort(distances.begin(), distances.end(),
            [](const Distance& a, const Distance& b) { return a.squared < b.squared; });
  std::vector<int64_t> assigned(static_cast<size_t>(rows.rows()), -1);
  std::vector<int64_t> members(static_cast<size_t>(centroids.rows()));
  const int64_t least = rows.rows() / centroids.rows();
  int64_t with_one_more = rows.rows() % centroids.rows();
  for (const Distance& each : distances) {
    int64_t& cell = assigned[static_cast<size_t>(each.row)];
    int64_t& count = members[static_cast<size_t>(each.cell)];
    if (cell >= 0 || count > least || (count == least && with_one_more == 0)) continue;
    if (count == least) --with_one_more;
    cell = each.cell;
    ++count;
  }
  return assigned;
}

}  // namespace

Matrix DiscriminantRows(const Matrix& rows, const std::vector<int32_t>& labels) {
  const auto [within, between] = Separate(rows, labels);
  const auto count = static_cast<double>(rows.rows());
  Matrix width = within.transpose() * within / count;
  const double mean_variance = width.trace() / static_cast<double>(width.rows());
  // Where no class is wide all directions count alike.
  const double added = mean_variance > 0 ? kAddedVariance * mean_variance : 1;
  width.diagonal().array() += added;
  const Eigen::GeneralizedSelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      Eigen::MatrixXd(between.transpose() * between / count), Eigen::MatrixXd(width));
  const std::set<int32_t> classes(labels.begin(), labels.end());
  const auto kept = std::min<Eigen::Index>(rows.cols(), std::ssize(classes) - 1);
  return rows * solver.eigenvectors().rightCols(kept);
}

std::vector<int64_t> BalancedCells(const FloatMatrix& rows, int64_t count) {
  FloatMatrix centroids = KMeans(rows, count, {});
  std::vector<int64_t> cells = AssignBalanced(rows, centroids);
  for (int round = 1; round < kBalancingRounds; ++round) {
    centroids = MeansOfCells(rows.cast<double>(), cells, count);
    std::vector<int64_t> moved = AssignBalanced(rows, centroids);
    if (moved == cells) break;
    cells = std::move(moved);
  }
  return cells;
}

FloatMatrix MeansOfCells(const Matrix& features, const std::vector<int64_t>& cells, int64_t count) {
  Matrix sums = Matrix::Zero(count, features.cols());
  std::vector<double> members(static_cast<size_t>(count));
  for (size_t row = 0; row < cells.size(); ++row) {
    sums.row(cells[row]) += features.row(static_cast<Eigen::Index>(row));
    members[static_cast<size_t>(cells[row])] += 1;
  }
  std::vector<Eigen::Index> used;
  for (size_t cell = 0; cell < members.size(); ++cell) {
    if (members[cell] == 0) continue;
    sums.row(static_cast<Eigen::Index>(cell)) /= members[cell];
    used.push_back(static_cast<Eigen::Index>(cell));
  }
  return sums(used, Eigen::all).cast<float>();
}

}  // namespace privatemail::client
