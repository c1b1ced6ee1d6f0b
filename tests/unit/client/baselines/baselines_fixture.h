// The rows on which scikit-learn was asked, as a split.
#ifndef PRIVATEMAIL_TESTS_UNIT_CLIENT_BASELINES_BASELINES_FIXTURE_H_
#define PRIVATEMAIL_TESTS_UNIT_CLIENT_BASELINES_BASELINES_FIXTURE_H_

#include <cmath>
#include <vector>

#include "client/baselines/baseline.h"
#include "tests/golden/golden.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::baselines {

inline LabelledRows Unlabelled(Matrix rows) {
  std::vector<int32_t> labels(static_cast<size_t>(rows.rows()), 0);
  return {std::move(rows), std::move(labels)};
}

// Anchors are the gallery's rows again: as much like it as public data can be.
inline DataSplit GoldenSplit() {
  const Matrix gallery = MatrixFrom(Golden()["gallery"]);
  return {Unlabelled(gallery), Unlabelled(gallery), Unlabelled(MatrixFrom(Golden()["targets"]))};
}

// Every gallery row so often: the same axes, under noise that counts for so much less.
inline DataSplit GoldenSplitWithCopies(Eigen::Index copies) {
  DataSplit split = GoldenSplit();
  split.gallery = Unlabelled(split.gallery.features.replicate(copies, 1));
  return split;
}

// m x n, from each target to each gallery row: what rankings see, whatever the signs of axes.
inline Matrix Distances(const Matrix& targets, const Matrix& gallery) {
  Matrix distances(targets.rows(), gallery.rows());
  for (Eigen::Index i = 0; i < targets.rows(); ++i) {
    distances.row(i) = (gallery.rowwise() - targets.row(i)).rowwise().norm().transpose();
  }
  return distances;
}

// Tests that count or average allow six deviations: below 2e-9 a value in false alarms.
inline constexpr double kDeviations = 6;

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_TESTS_UNIT_CLIENT_BASELINES_BASELINES_FIXTURE_H_
