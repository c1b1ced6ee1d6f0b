// Retrieval: alignment of a release with an embedding, and nearest items.
#ifndef PRIVATEMAIL_SERVER_ENGINE_RETRIEVER_H_
#define PRIVATEMAIL_SERVER_ENGINE_RETRIEVER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/matrix.h"
#include "common/embedding/alignment.h"
#include "common/embedding/label_graph.h"
#include "common/embedding/public_parameters.h"
#include "common/index/exact_index.h"
#include "common/items/payload_filter.h"
#include "common/numerics/neighbors.h"
#include "server/engine/hidden_rows.h"
#include "server/engine/payload_columns.h"
#include "server/store/types.h"

namespace privatemail::server {

// A searcher's query. The server sees all of it; it holds no raw feature (retrieval.proto).
struct RetrievalQuery {
  Matrix release;                     // (slots + anchors) x embedding_dim, finite
  int64_t post_processing_steps = 0;  // 0, or the settings' steps to run here
  int64_t k = 0;                      // 1 to kMaxNeighbors
  CancelledFunction cancelled;
  std::optional<PayloadFilter> filter = std::nullopt;           // applies to every slot
  int64_t filter_memory = std::numeric_limits<int64_t>::max();  // maximum bytes of the filter
  // As in PayloadColumns::Search.
  std::function<absl::Status(int64_t bytes)> reserve = nullptr;
  std::shared_ptr<const HiddenRows> hidden = nullptr;  // excluded rows; null: none
  std::string searcher = "";  // id of the key; bounds what its filters take from others
};

struct RetrievalAnswer {
  // One list a slot: rows of the min(k, n) nearest of n eligible items, nearest first.
  std::vector<std::vector<Neighbor>> slots;
  Similarity alignment;          // from release to server coordinates
  double relative_residual = 0;  // of the anchors under it
  bool truncated = false;        // fewer than k items are eligible
};

// A searchable embedding. Immutable and thread-safe. Server side; holds nothing private of a
// searcher.
class Retriever {
 public:
  // anchor_labels: in the published order of anchors.
  Retriever(const PublicParameters& parameters, const std::vector<int32_t>& anchor_labels,
            Embedding embedding);

  // Approximate bytes of a retriever: at least, for so many items; and for this embedding.
  static int64_t MemoryFor(int64_t items, int64_t embedding_dim);
  static int64_t MemoryFor(const Embedding& embedding);
  // MemoryFor its embedding.
  int64_t memory() const { return memory_; }

  // PRIVACY.md section 1, steps 4 to 6: optional post-processing, Kabsch-Umeyama with scale from
  // the release's anchor rows to the embedding's, and the nearest items of each slot.
  //   INVALID_ARGUMENT     k, post_processing_steps or the release's shape: "release has the wrong
  //                        dimension: expected 1100 x 2, got 1100 x 3"
  //   RESOURCE_EXHAUSTED   k above kMaxNeighbors; memory of the filter
  //   FAILED_PRECONDITION  anchors that cannot be aligned; a release that vanishes or overflows
  //   CANCELLED
  // Cost: ExactIndex for each slot, O((slots + anchors)^2) for each post-processing step, and
  // PayloadColumns with a filter.
  absl::StatusOr<RetrievalAnswer> Retrieve(const RetrievalQuery& query) const;

  // PayloadColumns::UnknownPaths of the items.
  absl::StatusOr<std::vector<std::string>> UnknownPaths(
      const std::vector<std::string>& paths, const HiddenRows* hidden,
      const PayloadColumns::Search& search) const {
    return payloads_.UnknownPaths(paths, hidden, search);
  }

  const std::string& IdOf(int64_t row) const { return ids_[static_cast<size_t>(row)]; }
  int32_t LabelOf(int64_t row) const { return labels_[static_cast<size_t>(row)]; }
  const std::string& PayloadOf(int64_t row) const { return payloads_[row]; }
  // Empty if the embedding has no such item.
  std::optional<int64_t> RowOf(const std::string& id) const;

  const Matrix& anchor_coordinates() const { return anchors_.points(); }
  const Matrix& coordinates() const { return index_.points(); }  // of the items
  Eigen::Index items() const { return index_.size(); }
  // True if a search without a filter takes microseconds a slot, while few rows are hidden.
  bool IsFast() const { return index_.IsFast(); }
  // ExactIndex::description.
  std::string index_description() const { return index_.description(); }
  uint64_t version() const { return version_; }
  uint64_t items_version() const { return items_version_; }
  double objective() const { return objective_; }
  // AffinityPlan::why; empty for a loaded embedding.
  const std::string& plan() const { return plan_; }

 private:
  absl::Status Check(const RetrievalQuery& query) const;
  EmbeddingSettings settings_;
  Eigen::Index slots_;
  LabelGraph release_label_graph_;  // over slot labels, then anchor labels
  int64_t memory_;
  uint64_t version_;
  uint64_t items_version_;
  double objective_;
  std::string plan_;
  std::vector<std::string> ids_;
  std::vector<int32_t> labels_;
  PayloadColumns payloads_;
  AlignmentTarget anchors_;  // their coordinates
  ExactIndex index_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_RETRIEVER_H_
