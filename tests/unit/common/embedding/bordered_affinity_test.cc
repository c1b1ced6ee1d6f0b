#include "common/embedding/bordered_affinity.h"

#include "tests/unit/common/embedding/affinity_cases.h"

namespace privatemail::testing {
namespace {

Border OwnRows(const Matrix& rows) {
  return {std::vector<Eigen::Index>(static_cast<size_t>(rows.rows()), Border::kOwn), rows};
}

BorderedAffinity Bordered(const Matrix& points, Eigen::Index border, double c) {
  return {OwnRows(points.topRows(border)),
          *FixedRows::Create(points.bottomRows(points.rows() - border), c)};
}

// A cloud after a border of three own rows and copies of every second row of the cloud.
struct CloudWithCopies {
  explicit CloudWithCopies(const Matrix& cloud) {
    const Matrix own = UnitNormal(3, cloud.cols(), 23);
    const Eigen::Index copies = (cloud.rows() + 1) / 2;
    border.own = own;
    points.resize(3 + copies + cloud.rows(), cloud.cols());
    const auto add = [&](const auto& row, Eigen::Index copy_of) {
      points.row(static_cast<Eigen::Index>(border.copy_of.size())) = row;
      border.copy_of.push_back(copy_of);
    };
    add(own.row(0), Border::kOwn);
    for (Eigen::Index i = 0; i < copies; ++i) {
      // From the last to the first: copies need not be in order.
      const Eigen::Index original = 2 * (copies - 1 - i);
      add(cloud.row(original), original);
      if (i == copies / 2) add(own.row(1), Border::kOwn);
    }
    add(own.row(2), Border::kOwn);
    points.bottomRows(cloud.rows()) = cloud;
  }
  Border border;
  Matrix points;
};

TEST(BorderedAffinity, OwnRowsMatchDenseMatrix) {
  for (const Cloud& cloud : Clouds()) {
    const Eigen::Index n = cloud.points.rows();
    const Matrix v = Normal(n, 3, 17);
    for (const double c : {0.3, 72.0, 1e8}) {
      for (const Eigen::Index border : {Eigen::Index{1}, n / 2, n - 1}) {
        ExpectClose(Bordered(cloud.points, border, c), cloud.points, c, v, 1e-13, cloud.name);
      }
    }
  }
}

TEST(BorderedAffinity, CopiesMatchDenseMatrix) {
  for (const Cloud& cloud : Clouds()) {
    const CloudWithCopies with(cloud.points);
    const Matrix v = Normal(with.points.rows(), 3, 17);
    for (const double c : {0.3, 72.0, 1e8}) {
      const auto fixed = *FixedRows::Create(cloud.points, c);
      ExpectClose(BorderedAffinity(with.border, fixed), with.points, c, v, 1e-13, cloud.name);
    }
  }
}

// A release without a pool of dummies has one own row. Borders share the fixed rows.
TEST(BorderedAffinity, OneOrNoOwnRowMatchesDenseMatrix) {
  const Matrix cloud = UnitNormal(300, 7, 1);
  const auto fixed = *FixedRows::Create(cloud, 2);
  for (const Eigen::Index own : {1, 0}) {
    const Matrix row = UnitNormal(own, 7, 3);
    std::vector<Eigen::Index> copy_of = {5, 0};
    if (own == 1) copy_of.push_back(Border::kOwn);
    Matrix points(302 + own, 7);
    points << cloud.row(5), cloud.row(0), row, cloud;
    ExpectClose(BorderedAffinity({copy_of, row}, fixed), points, 2, Normal(302 + own, 2, 2), 1e-13,
                "copies");
  }
}

TEST(BorderedAffinity, UncachedFixedRowsMatchDenseMatrix) {
  const Matrix points = UnitNormal(4200, 3, 1);
  ExpectClose(Bordered(points, 10, 2), points, 2, Normal(4200, 2, 2), 1e-13, "4,190 fixed rows");
}

TEST(BorderedAffinity, ObserverErrorStopsProduct) {
  const auto product =
      Bordered(UnitNormal(300, 7, 1), 10, 2).MultiplyWithDegrees(Matrix::Ones(300, 1), [](double) {
        return absl::CancelledError("enough");
      });
  EXPECT_EQ(product.status(), absl::CancelledError("enough"));
}

}  // namespace
}  // namespace privatemail::testing
