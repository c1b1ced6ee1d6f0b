#include "server/index/search_index.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace privatemail {
namespace {

// Rounded down: what is reported was reached.
std::string InThousandths(double share) {
  return absl::StrFormat("%.3f", std::floor(1000 * share) / 1000);
}

std::string Describe(const ApproximateIndex::Quality& quality) {
  return absl::StrCat("IVF of ", quality.lists, " lists, ", quality.probed, " probed, recall@",
                      ApproximateIndex::kCount, " ", InThousandths(quality.recall), " on ",
                      ApproximateIndex::kQueries, " queries");
}

}  // namespace

SearchIndex::SearchIndex(Matrix points, const IndexOptions& options)
    : exact_(std::make_unique<const ExactIndex>(std::move(points))),
      description_(exact_->has_tree() ? "exact, k-d tree" : "exact, scan") {
  if (!options.approximate || exact_->has_tree() || size() < kFewestApproximateRows) return;
  approximate_ = ApproximateIndex::Make(*exact_, options.recall);
  description_ = approximate_ != nullptr
                     ? Describe(approximate_->quality())
                     : absl::StrCat(description_, "; IVF would not reach recall@",
                                    ApproximateIndex::kCount, " ", options.recall);
}

std::vector<Neighbor> SearchIndex::Search(const RowVector& query, int64_t count,
                                          const std::vector<bool>* hidden) const {
  if (approximate_ != nullptr) return approximate_->Search(query, count, hidden);
  return exact_->Search(query, count, hidden);
}

}  // namespace privatemail
