#include "client/baselines/non_private.h"

#include <algorithm>

#include "client/baselines/principal_axes.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client::baselines {
namespace {

// Of `draws` different rows of n, none is among `matching`.
double ChanceOfNoMatch(int64_t n, int64_t matching, int64_t draws) {
  double chance = 1;
  for (int64_t i = 0; i < draws && chance > 0; ++i) {
    chance *= std::max(0.0, static_cast<double>(n - matching - i)) / static_cast<double>(n - i);
  }
  return chance;
}

}  // namespace

absl::StatusOr<BaselineResult> Features(const DataSplit& split) {
  PM_RETURN_IF_ERROR(CheckSplit(split, 1));
  return BaselineResult{split.gallery.features, split.targets.features, NoGuarantee(),
                        kProtectsNothing};
}

absl::StatusOr<BaselineResult> Pca(const DataSplit& split, const PcaOptions& options) {
  PM_RETURN_IF_ERROR(CheckSplit(split, options.dimension));
  const RowVector mean = split.gallery.features.colwise().mean();
  const Matrix gallery = split.gallery.features.rowwise() - mean;
  PM_ASSIGN_OR_RETURN(const Matrix axes,
                      PrincipalAxes(gallery.transpose() * gallery, options.dimension));
  return BaselineResult{gallery * axes, (split.targets.features.rowwise() - mean) * axes,
                        NoGuarantee(), kProtectsNothing};
}

absl::StatusOr<BaselineResult> RandomGuess(const DataSplit& split, BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckSplit(split, 1));
  BaselineResult result{.guarantee = {.epsilon = 0,
                                      .delta = 0,
                                      .neighbours = "any two inputs with as many rows",
                                      .proven = true,
                                      .source = "the release does not depend on the input"},
                        .protects = kRandomGuessProtects};
  PM_ASSIGN_OR_RETURN(result.gallery, NormalStart(split.gallery.features.rows(), 1, 1, bits));
  PM_ASSIGN_OR_RETURN(result.targets, NormalStart(split.targets.features.rows(), 1, 1, bits));
  return result;
}

absl::StatusOr<double> RandomGuessRecall(const std::vector<int32_t>& gallery_labels,
                                         const std::vector<int32_t>& target_labels, int64_t k) {
  const auto n = static_cast<int64_t>(gallery_labels.size());
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", k, 1, n));
  if (target_labels.empty()) {
    return absl::InvalidArgumentError("targets must have labels, but there are none");
  }
  double recall = 0;
  for (const int32_t label : target_labels) {
    const int64_t matching = std::count(gallery_labels.begin(), gallery_labels.end(), label);
    recall += 1 - ChanceOfNoMatch(n, matching, k);
  }
  return recall / static_cast<double>(target_labels.size());
}

}  // namespace privatemail::client::baselines
