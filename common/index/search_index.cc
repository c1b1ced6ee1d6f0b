#include "common/index/search_index.h"

#include <cmath>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace privatemail {
namespace {

// Rounded down: the reported recall was reached.
std::string InThousandths(double share) {
  return absl::StrFormat("%.3f", std::floor(1000 * share) / 1000);
}

std::string Describe(const ApproximateIndex::Quality& quality) {
  return absl::StrCat("IVF of ", quality.lists, " lists, ", quality.probed, " probed, recall@",
                      ApproximateIndex::kRecallNeighbors, " ", InThousandths(quality.recall),
                      " on ", ApproximateIndex::kRecallQueries, " queries");
}

}  // namespace

SearchIndex::SearchIndex(Matrix points, const IndexOptions& options)
    : exact_(std::make_unique<const ExactIndex>(std::move(points))), options_(options) {}

bool SearchIndex::ShouldBuildApproximate() const {
  return options_.approximate && !exact_->has_r_tree() && size() >= kMinApproximateRows;
}

void SearchIndex::BuildApproximateIndex(const std::atomic<bool>* stopped) const {
  if (built_ != nullptr || !ShouldBuildApproximate()) return;  // searches may use it
  built_ = std::make_unique<const Approximate>(TryApproximate(stopped));
  approximate_ = built_.get();
}

SearchIndex::Approximate SearchIndex::TryApproximate(const std::atomic<bool>* stopped) const {
  try {
    auto index = ApproximateIndex::Make(*exact_, options_.recall, stopped);
    std::string description =
        index != nullptr ? Describe(index->quality())
                         : absl::StrCat(ExactDescription(), "; IVF would not reach recall@",
                                        ApproximateIndex::kRecallNeighbors, " ", options_.recall);
    return {std::move(index), std::move(description)};
  } catch (const std::exception& error) {  // from FAISS, or out of memory
    return {nullptr, absl::StrCat(ExactDescription(), "; IVF failed: ", error.what())};
  }
}

std::string SearchIndex::ExactDescription() const {
  return exact_->has_r_tree() ? "exact, R-tree" : "exact, k-d tree";
}

std::string SearchIndex::description() const {
  if (const Approximate* built = approximate_) return built->description;
  return absl::StrCat(ExactDescription(), ShouldBuildApproximate() ? "; IVF is being built" : "");
}

std::vector<std::vector<Neighbor>> SearchIndex::Search(const Matrix& queries, int64_t count,
                                                       const std::vector<bool>* hidden) const {
  const Approximate* built = approximate_;
  if (built != nullptr && built->index != nullptr)
    return built->index->Search(queries, count, hidden);
  return exact_->Search(queries, count, hidden);
}

}  // namespace privatemail
