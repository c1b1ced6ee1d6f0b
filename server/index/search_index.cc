#include "server/index/search_index.h"

#include <chrono>
#include <cmath>
#include <new>
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
    : exact_(std::make_unique<const ExactIndex>(std::move(points))) {
  if (!options.approximate || exact_->has_tree() || size() < kFewestApproximateRows) return;
  approximate_ = std::async(std::launch::async,
                            [this, recall = options.recall] { return MakeApproximate(recall); });
}

SearchIndex::~SearchIndex() {
  stopped_ = true;
  AwaitApproximate();
}

void SearchIndex::AwaitApproximate() const {
  if (approximate_.valid()) approximate_.wait();
}

SearchIndex::Approximate SearchIndex::MakeApproximate(double recall) const {
  try {
    auto index = ApproximateIndex::Make(*exact_, recall, &stopped_);
    std::string description =
        index != nullptr ? Describe(index->quality())
                         : absl::StrCat(ExactDescription(), "; IVF would not reach recall@",
                                        ApproximateIndex::kCount, " ", recall);
    return {std::move(index), std::move(description)};
  } catch (const std::bad_alloc&) {
    return {nullptr, absl::StrCat(ExactDescription(), "; no memory for IVF")};
  }
}

const SearchIndex::Approximate* SearchIndex::approximate() const {
  const bool ready = approximate_.valid() &&
                     approximate_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  return ready ? &approximate_.get() : nullptr;
}

std::string SearchIndex::ExactDescription() const {
  return exact_->has_tree() ? "exact, k-d tree" : "exact, scan";
}

std::string SearchIndex::description() const {
  if (const Approximate* made = approximate()) return made->description;
  return absl::StrCat(ExactDescription(), approximate_.valid() ? "; IVF is being made" : "");
}

std::vector<Neighbor> SearchIndex::Search(const RowVector& query, int64_t count,
                                          const std::vector<bool>* hidden) const {
  const Approximate* made = approximate();
  if (made != nullptr && made->index != nullptr) return made->index->Search(query, count, hidden);
  return exact_->Search(query, count, hidden);
}

}  // namespace privatemail
