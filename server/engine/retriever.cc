#include "server/engine/retriever.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/cancellation.h"
#include "common/base/field_error.h"
#include "common/base/huge_pages.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::server {
namespace {

std::vector<int32_t> ReleaseLabels(const PublicParameters& parameters,
                                   const std::vector<int32_t>& anchor_labels) {
  std::vector<int32_t> labels = parameters.slot_labels;
  labels.insert(labels.end(), anchor_labels.begin(), anchor_labels.end());
  return labels;
}

// Slots per pass over the gallery, and between polls for cancellation.
constexpr Eigen::Index kSlotsPerPass = 16;

}  // namespace

Retriever::Retriever(const PublicParameters& parameters, const std::vector<int32_t>& anchor_labels,
                     Embedding embedding)
    : settings_(parameters.settings),
      slots_(static_cast<Eigen::Index>(parameters.slot_labels.size())),
      release_label_graph_(ReleaseLabels(parameters, anchor_labels), settings_.label_graph,
                           settings_.KernelDenominator()),
      memory_(MemoryFor(embedding)),
      version_(embedding.version),
      items_version_(embedding.items_version),
      objective_(embedding.objective),
      plan_(std::move(embedding.plan)),
      ids_(std::move(embedding.ids)),
      labels_(std::move(embedding.labels)),
      payloads_(std::move(embedding.payloads), memory_ / 2),
      anchors_(std::move(embedding.anchor_coordinates)),
      index_(std::move(embedding.coordinates)) {
  UseHugePages(ids_);
  UseHugePages(labels_);
}

// Rows in the order of ids and in that of the index's leaves, and cached columns of filters, which
// are as much again.
int64_t Retriever::MemoryFor(int64_t items, int64_t embedding_dim) {
  constexpr int64_t kTexts = 2 * sizeof(std::string);
  const int64_t of_item = kTexts + static_cast<int64_t>(sizeof(int32_t)) +
                          embedding_dim * static_cast<int64_t>(2 * sizeof(double) + 1) +
                          3 * static_cast<int64_t>(sizeof(int64_t));
  return 2 * items * of_item;
}

int64_t Retriever::MemoryFor(const Embedding& embedding) {
  int64_t texts = 0;
  for (const std::string& id : embedding.ids) texts += std::ssize(id);
  for (const std::string& payload : embedding.payloads) texts += std::ssize(payload);
  return MemoryFor(std::ssize(embedding.ids), embedding.coordinates.cols()) + 2 * texts;
}

absl::Status Retriever::Check(const RetrievalQuery& query) const {
  if (query.k > kMaxNeighbors) {
    return absl::ResourceExhaustedError(
        absl::StrCat("k is ", query.k, ", more than the limit of ", kMaxNeighbors));
  }
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", query.k, 1, kMaxNeighbors));
  if (query.post_processing_steps != 0 && query.post_processing_steps != settings_.steps) {
    return InvalidField("post_processing_steps",
                        absl::StrCat("must be 0 or the collection's steps ", settings_.steps,
                                     ", but is ", query.post_processing_steps));
  }
  const Eigen::Index rows = slots_ + anchor_coordinates().rows();
  if (query.release.rows() != rows || query.release.cols() != settings_.embedding_dim) {
    return InvalidField("release", absl::StrCat("has the wrong dimension: expected ", rows, " x ",
                                                settings_.embedding_dim, ", got ",
                                                query.release.rows(), " x ", query.release.cols()));
  }
  return absl::OkStatus();
}

std::optional<int64_t> Retriever::RowOf(const std::string& id) const {
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (found == ids_.end() || *found != id) return std::nullopt;
  return found - ids_.begin();
}

absl::StatusOr<RetrievalAnswer> Retriever::Retrieve(const RetrievalQuery& query) const {
  PM_RETURN_IF_ERROR(Check(query));
  PM_RETURN_IF_ERROR(CheckNotCancelled(query.cancelled));
  Matrix finished;
  if (query.post_processing_steps != 0) {
    const StepObserver watch = [&](double /*done*/, int /*steps*/) {
      return CheckNotCancelled(query.cancelled);
    };
    PM_ASSIGN_OR_RETURN(finished,
                        PostProcess(query.release, release_label_graph_, settings_, watch));
  }
  const Matrix& release = query.post_processing_steps == 0 ? query.release : finished;
  const MatrixView anchors = release.bottomRows(anchor_coordinates().rows());
  RetrievalAnswer answer;
  PM_ASSIGN_OR_RETURN(answer.alignment, anchors_.KabschUmeyama(anchors));
  answer.relative_residual = anchors_.RelativeResidual(answer.alignment, anchors);
  const Matrix targets = answer.alignment.Apply(release.topRows(slots_));
  if (!targets.allFinite()) {
    return absl::FailedPreconditionError(
        "the release's slots cannot be mapped: their coordinates overflow under the alignment");
  }
  std::optional<ExactIndex::Part> part;
  if (query.filter) {
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> rows,
                        payloads_.MatchingRows(
                            *query.filter, query.hidden.get(),
                            {query.cancelled, query.filter_memory, query.reserve, query.searcher}));
    part.emplace(index_, rows);
  }
  const std::vector<bool>* hidden = query.hidden == nullptr ? nullptr : &query.hidden->hidden;
  const int64_t hidden_rows = query.hidden == nullptr ? 0 : query.hidden->count;
  answer.truncated = query.k > (part ? part->size() : index_.size() - hidden_rows);
  answer.slots.reserve(static_cast<size_t>(slots_));
  for (Eigen::Index slot = 0; slot < slots_; slot += kSlotsPerPass) {
    PM_RETURN_IF_ERROR(CheckNotCancelled(query.cancelled));
    const Matrix batch = targets.middleRows(slot, std::min(kSlotsPerPass, slots_ - slot));
    for (std::vector<Neighbor>& nearest :
         part ? part->Search(batch, query.k) : index_.Search(batch, query.k, hidden)) {
      // Loads ids and labels into the cache, for their encoding, while the search goes on.
      for (const Neighbor& match : nearest) {
        __builtin_prefetch(&IdOf(match.row));
        __builtin_prefetch(&labels_[static_cast<size_t>(match.row)]);
      }
      answer.slots.push_back(std::move(nearest));
    }
  }
  return answer;
}

}  // namespace privatemail::server
