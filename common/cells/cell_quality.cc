#include "common/cells/cell_quality.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

template <typename Number>
absl::Status CheckAscending(absl::string_view field, const std::vector<Number>& numbers) {
  Number former = 0;
  for (const Number number : numbers) {
    if (!(number > former)) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " must be positive and ascend, but has ", number, " after ", former));
    }
    former = number;
  }
  if (numbers.size() >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must have at least 2 numbers, but has ", numbers.size()));
}

absl::Status CheckMeans(absl::string_view field, const std::vector<MeasuredQuality>& means,
                        size_t count) {
  if (means.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must have ", count, " means, but has ", means.size()));
  }
  for (const MeasuredQuality& one : means) {
    for (const double share : {one.fidelity.value, one.fidelity.standard_error, one.recall.value,
                               one.recall.standard_error}) {
      PM_RETURN_IF_ERROR(CheckBetween(field, share, 0, 1));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const CellQuality& quality, size_t partitions) {
  if (quality.queries < kMinQualityQueries) {
    return absl::InvalidArgumentError(absl::StrCat(
        "quality.queries must be at least ", kMinQualityQueries, ", but is ", quality.queries));
  }
  PM_RETURN_IF_ERROR(CheckAscending("quality.items", quality.items));
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("quality.items", quality.items.back(), 1, kMaxQualityItems));
  PM_RETURN_IF_ERROR(CheckAscending("quality.epsilons", quality.epsilons));
  if (quality.partitions.size() != partitions) {
    return absl::InvalidArgumentError(absl::StrCat("quality.partitions must have ", partitions,
                                                   " partitions, but has ",
                                                   quality.partitions.size()));
  }
  const size_t means = quality.items.size() * quality.epsilons.size();
  for (const PartitionQuality& partition : quality.partitions) {
    PM_RETURN_IF_ERROR(CheckMeans("quality.partitions.own", partition.own, means));
    PM_RETURN_IF_ERROR(CheckMeans("quality.partitions.other", partition.other, means));
  }
  return absl::OkStatus();
}

}  // namespace privatemail
