#include "privatemail/radius_meaning.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/exactly.h"

namespace privatemail::client {
namespace {

constexpr Eigen::Index kMostRows = 4000;
constexpr Eigen::Index kBlock = 256;  // rows that are compared with all at once

std::string Share(int64_t close, int64_t pairs, const char* of) {
  if (pairs == 0) return absl::StrCat("there are no ", of);
  return absl::StrFormat("%.3g %% of %s",
                         100. * static_cast<double>(close) / static_cast<double>(pairs), of);
}

}  // namespace

std::string RadiusMeaning::InWords() const {
  return absl::StrCat("closer than ", Exactly(radius), ": ",
                      Share(close_of_one_class, pairs_of_one_class, "pairs of one class"), ", ",
                      Share(close_of_two_classes, pairs_of_two_classes, "pairs of two classes"));
}

RadiusMeaning MeaningOfRadius(const Matrix& anchors, const std::vector<int64_t>& class_of_anchor,
                              double radius) {
  const Eigen::Index rows = std::min(anchors.rows(), kMostRows);
  const auto nth = [&](Eigen::Index i) { return i * anchors.rows() / rows; };
  Matrix some(rows, anchors.cols());
  for (Eigen::Index i = 0; i < rows; ++i) some.row(i) = anchors.row(nth(i));
  const auto class_of = [&](Eigen::Index i) {
    return class_of_anchor[static_cast<size_t>(nth(i))];
  };

  RadiusMeaning meaning{.radius = radius};
  for (Eigen::Index first = 0; first < rows; first += kBlock) {
    const Eigen::Index count = std::min(kBlock, rows - first);
    const Matrix products = some.middleRows(first, count) * some.transpose();
    for (Eigen::Index i = first; i < first + count; ++i) {
      for (Eigen::Index j = 0; j < i; ++j) {
        const bool close = 2 - 2 * products(i - first, j) <= radius * radius;
        const bool one_class = class_of(i) == class_of(j);
        ++(one_class ? meaning.pairs_of_one_class : meaning.pairs_of_two_classes);
        if (close) ++(one_class ? meaning.close_of_one_class : meaning.close_of_two_classes);
      }
    }
  }
  return meaning;
}

}  // namespace privatemail::client
