#include "common/embedding/low_dimensional_affinity.h"

#include <cmath>
#include <vector>

#include "common/base/status_macros.h"

namespace privatemail {
namespace {

// Derives a feature from one of lower degree: times sqrt(2/c) x_coordinate, divided by
// sqrt(power).
struct Step {
  Eigen::Index from;
  Eigen::Index coordinate;
  int power;  // of the coordinate, in the new feature
};

// One step for each nonzero exponent, raising powers in the order of the coordinates.
std::vector<Step> AllSteps(Eigen::Index cols, int degree) {
  std::vector<Step> steps;
  // Index 0: the constant feature; index i + 1: step i.
  struct Last {
    Eigen::Index coordinate;
    int power;
  };
  std::vector<Last> last = {{0, 0}};
  size_t begin = 0;
  for (int d = 1; d <= degree; ++d) {
    const size_t end = last.size();
    for (size_t from = begin; from < end; ++from) {
      for (Eigen::Index c = last[from].coordinate; c < cols; ++c) {
        const int power = c == last[from].coordinate ? last[from].power + 1 : 1;
        steps.push_back({static_cast<Eigen::Index>(from), c, power});
        last.push_back({c, power});
      }
    }
    begin = end;
  }
  return steps;
}

}  // namespace

LowDimensionalAffinity::LowDimensionalAffinity(const Matrix& points, double kernel_denominator,
                                               int degree) {
  const std::vector<Step> steps = AllSteps(points.cols(), degree);
  const Eigen::MatrixXd scaled = std::sqrt(2 / kernel_denominator) * points;
  features_.resize(points.rows(), static_cast<Eigen::Index>(steps.size()) + 1);
  features_.col(0) = (-points.rowwise().squaredNorm().array() / kernel_denominator).exp();
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& [from, coordinate, power] = steps[i];
    features_.col(static_cast<Eigen::Index>(i) + 1) =
        features_.col(from).cwiseProduct(scaled.col(coordinate)) / std::sqrt(power);
  }
  own_ = features_.rowwise().squaredNorm();
}

double LowDimensionalAffinity::Features(Eigen::Index cols, int degree) {
  double features = 1;
  for (Eigen::Index c = 1; c <= cols; ++c) {
    features *= static_cast<double>(degree + c) / static_cast<double>(c);
  }
  return features;
}

absl::Status LowDimensionalAffinity::Sums(const Matrix& v, Matrix* product, Vector* degrees,
                                          const ProductObserver& observer) const {
  if (observer) PM_RETURN_IF_ERROR(observer(0));
  *product = features_ * (features_.transpose() * v);
  product->array() -= v.array().colwise() * own_.array();
  if (degrees != nullptr) {
    *degrees = features_ * features_.colwise().sum().transpose() - own_;
  }
  return absl::OkStatus();
}

double TaylorError(int degree, double a) {
  double error = std::exp(a);
  for (int m = 1; m <= degree + 1; ++m) error *= a / m;
  return error;
}

std::optional<int> TaylorDegree(double a, double tolerance) {
  for (int degree = 0; degree <= kMaxTaylorDegree; ++degree) {
    if (TaylorError(degree, a) <= tolerance) return degree;
  }
  return std::nullopt;
}

double LowDimensionalRounding(Eigen::Index n, Eigen::Index k, int degree, double a) {
  const double roundings = 2 * (3 * degree + 20) + static_cast<double>(n) +
                           LowDimensionalAffinity::Features(k, degree) + 4;
  return 2 * roundings * 0x1p-53 * std::exp(2 * a);
}

}  // namespace privatemail
