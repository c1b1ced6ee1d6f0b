#include "client/schemes/request_checks.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "client/schemes/memory_budget.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"

namespace privatemail::client {

std::string TargetName(const SearchRequest& request, size_t target) {
  const std::string& name = request.targets[target].name;
  return name.empty() ? absl::StrCat("target ", target) : name;
}

namespace {

absl::Status CheckUsable(const std::string& name, Metric metric,
                         const Eigen::RowVectorXf& features) {
  const absl::Status status = CheckHasSimilarity(name, metric, features.data(), features.size());
  if (status.ok()) return status;
  return InvalidField("targets", absl::StrCat("must be usable: ", status.message()));
}

}  // namespace

absl::Status CheckTargetValues(const SearchRequest& request) {
  const Metric metric = request.epsilon.has_value() ? Metric::kCosine : Metric::kDot;
  for (size_t i = 0; i < request.targets.size(); ++i) {
    const Eigen::RowVectorXf& features = request.targets[i].features;
    PM_RETURN_IF_ERROR(CheckUsable(TargetName(request, i), metric, features));
  }
  return absl::OkStatus();
}

absl::Status CheckTargets(const SearchRequest& request, int64_t columns, Metric metric) {
  if (request.targets.empty()) return FieldError("targets", "at least one", "none");
  for (size_t i = 0; i < request.targets.size(); ++i) {
    const Eigen::RowVectorXf& features = request.targets[i].features;
    const std::string name = TargetName(request, i);
    if (features.size() != columns) {
      return FieldError("targets", absl::StrCat("rows of ", columns, " columns"),
                        absl::StrCat(features.size(), " columns in ", name));
    }
    PM_RETURN_IF_ERROR(CheckUsable(name, metric, features));
  }
  return absl::OkStatus();
}

absl::Status CheckPayloadMemory(std::vector<int64_t> lengths, int64_t k, size_t targets,
                                int64_t max_memory) {
  // A payload "[{},{},...]" takes 27 bytes for each of its own when it is parsed, and its copies in
  // the printed rows as many again.
  constexpr int64_t kBytesPerCharacter = 64;
  const auto end = lengths.begin() + std::min<int64_t>(k, std::ssize(lengths));
  std::partial_sort(lengths.begin(), end, lengths.end(), std::greater<>());
  const int64_t characters =
      static_cast<int64_t>(targets) * std::accumulate(lengths.begin(), end, int64_t{0});
  return CheckMemory(
      static_cast<double>(characters) * kBytesPerCharacter,
      absl::StrCat("the ", characters, " bytes that the payloads of the matches can have"),
      max_memory);
}

absl::Status ChargedWithoutRelease(const absl::Status& status) {
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; nothing was released, but the ledger was charged"));
}

}  // namespace privatemail::client
