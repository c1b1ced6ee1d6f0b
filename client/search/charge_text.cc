#include "client/search/charge_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/planning/published_quality.h"
#include "client/planning/query_plan.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "common/base/printable.h"

namespace privatemail::client {
namespace {

constexpr int64_t kIdBytes = 24;  // of an item's id: not published, assumed

std::string BytesText(int64_t bytes) {
  constexpr double kKilobyte = 1000;
  return absl::StrFormat("; a query takes about %.3g kB", static_cast<double>(bytes) / kKilobyte);
}

// Empty where the number of items is not known.
std::string CellsText(const SearchRequest& request, const PublicParameters& parameters,
                      const v1::GetCollectionResponse& published) {
  const CellCost cost{.partition = request.partition.value_or(0), .epsilon = *request.epsilon};
  const int64_t cells = parameters.cell_partitions[static_cast<size_t>(cost.partition)].cells;
  const auto quality = QualityOf(published);
  // Quality is that of requests for the one nearest cell.
  const bool is_measured =
      quality.ok() && request.ask.value_or(1) == 1 && request.focus.value_or(1) == 1;
  if (!is_measured && !request.items.has_value()) return "";
  const int64_t wished =
      request.items.has_value() ? *request.items : DefaultItems(*quality, cost, cells);
  const auto items = std::min(wished, static_cast<int64_t>(published.cells_items()));
  if (items < 1 || items > std::numeric_limits<uint32_t>::max()) return "";
  std::string text;
  if (is_measured) {
    text =
        absl::StrCat("; about ", FormatShare(Predict(*quality, cost, cells, items).fidelity.value),
                     " of the ", kQualityMatches, " nearest items are found");
  }
  return text + BytesText(AnswerBytes(parameters, items, kIdBytes));
}

}  // namespace

std::string OddsText(double epsilon) {
  constexpr double kMillion = 1e6;
  const double odds = std::exp(epsilon);
  return absl::StrFormat(
      "allows the server to become e^%g %s times as sure of a guess", epsilon,
      odds > kMillion ? "(more than a million)" : absl::StrFormat("= %.0f", odds));
}

std::string ChargeText(const SearchRequest& request, Scheme scheme,
                       const PublicParameters& parameters,
                       const v1::GetCollectionResponse& published, std::optional<double> recall) {
  const double epsilon = request.epsilon.value_or(0);
  if (scheme == Scheme::kEncrypted || !(epsilon > kAskedEpsilon)) return "";
  std::string text =
      absl::StrFormat("each query spends epsilon %g, which %s", epsilon, OddsText(epsilon));
  const auto partition = static_cast<size_t>(request.partition.value_or(0));
  if (scheme == Scheme::kCells && partition < parameters.cell_partitions.size()) {
    const auto cells = static_cast<double>(parameters.cell_partitions[partition].cells);
    absl::StrAppend(&text, "; of ", cells, " cells the query's own is asked for with probability ",
                    FormatShare(CellCeiling(epsilon, 1 / cells)));
    text += CellsText(request, parameters, published);
  } else if (scheme == Scheme::kJoint) {
    if (recall.has_value()) {
      absl::StrAppend(&text, "; the expected recall without noise is ", FormatShare(*recall));
    }
    text += BytesText(JointBytes(parameters, request.k));
  }
  return text;
}

int64_t JointBytes(const PublicParameters& parameters, int64_t k) {
  constexpr int64_t kMatchBytes = kIdBytes + 20;  // label, distance and their tags
  const auto slots = static_cast<int64_t>(parameters.slot_labels.size());
  const int64_t values = sizeof(float) * parameters.settings.embedding_dim;
  return (slots + parameters.anchor_count) * values +
         slots * std::min<int64_t>(k, kMaxNeighbors) * kMatchBytes;
}

std::string GrantText(double epsilon) {
  constexpr double kLarge = 20;
  if (!(epsilon > kLarge)) return "";
  return absl::StrCat("once epsilon ", epsilon, " is spent on one target, it ", OddsText(epsilon),
                      ": hardly anything is hidden then");
}

}  // namespace privatemail::client
