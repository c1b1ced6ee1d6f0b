#include "client/search/charge_text.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/privacy/mechanisms/cell_mechanism.h"

namespace privatemail::client {

std::string OddsText(double epsilon) {
  constexpr double kMillion = 1e6;
  const double odds = std::exp(epsilon);
  return absl::StrFormat(
      "allows the server to become e^%g %s times as sure of a guess", epsilon,
      odds > kMillion ? "(more than a million)" : absl::StrFormat("= %.0f", odds));
}

std::string ChargeText(const SearchRequest& request, Scheme scheme,
                       const PublicParameters& parameters) {
  const double epsilon = request.epsilon.value_or(0);
  if (scheme == Scheme::kEncrypted || !(epsilon > kAskedEpsilon)) return "";
  std::string text =
      absl::StrFormat("each query spends epsilon %g, which %s", epsilon, OddsText(epsilon));
  const auto partition = static_cast<size_t>(request.partition.value_or(0));
  if (scheme == Scheme::kCells && partition < parameters.cell_partitions.size()) {
    const auto cells = static_cast<double>(parameters.cell_partitions[partition].cells);
    absl::StrAppendFormat(&text, "; of %g cells the query's own is asked for with probability %.4g",
                          cells, CellCeiling(epsilon, 1 / cells));
  }
  return text;
}

std::string GrantText(double epsilon) {
  constexpr double kLarge = 20;
  if (!(epsilon > kLarge)) return "";
  return absl::StrCat("once epsilon ", epsilon, " is spent on one target, it ", OddsText(epsilon),
                      ": hardly anything is hidden then");
}

}  // namespace privatemail::client
