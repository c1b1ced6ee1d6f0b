#include "client/privacy/accounting/neighbours.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/exactly.h"

namespace privatemail::client {
namespace {

// "A^3 x B"
std::string Product(size_t sides, absl::FunctionRef<bool(size_t, size_t)> are_equal,
                    absl::FunctionRef<std::string(size_t)> text) {
  std::string product;
  for (size_t begin = 0, end = 0; begin < sides; begin = end) {
    while (end < sides && are_equal(begin, end)) ++end;
    absl::StrAppend(&product, begin == 0 ? "" : " x ", text(begin));
    if (end - begin > 1) absl::StrAppend(&product, "^", end - begin);
  }
  return product;
}

std::string Clipped(absl::string_view to, double l2_sensitivity) {
  return absl::StrCat("any two inputs whose values, clipped to ", to, ", differ by at most ",
                      Exactly(l2_sensitivity), " in L2");
}

}  // namespace

std::string NeighboursOfValue(double sensitivity, absl::string_view norm) {
  return absl::StrCat("any two inputs whose values differ by at most ", Exactly(sensitivity),
                      " in ", norm);
}

std::string NeighboursInBox(absl::Span<const double> lower, absl::Span<const double> upper,
                            double l2_sensitivity) {
  const auto are_equal = [&](size_t i, size_t j) {
    return lower[i] == lower[j] && upper[i] == upper[j];
  };
  const auto text = [&](size_t i) {
    return absl::StrCat("[", Exactly(lower[i]), ", ", Exactly(upper[i]), "]");
  };
  return Clipped(absl::StrCat("the box ", Product(lower.size(), are_equal, text)), l2_sensitivity);
}

std::string NeighboursInWidths(absl::Span<const double> widths, double l2_sensitivity) {
  const auto are_equal = [&](size_t i, size_t j) { return widths[i] == widths[j]; };
  const auto text = [&](size_t i) { return Exactly(widths[i]); };
  return Clipped(absl::StrCat("a box with the widths ", Product(widths.size(), are_equal, text)),
                 l2_sensitivity);
}

}  // namespace privatemail::client
