// The public messages of a small collection, "things".
#ifndef PRIVATEMAIL_TESTS_TESTING_PUBLISHED_THINGS_H_
#define PRIVATEMAIL_TESTS_TESTING_PUBLISHED_THINGS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/schemes/published_collection.h"
#include "common/embedding/default_settings.h"
#include "common/embedding/public_parameters.h"
#include "common/items/item_code.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/v1/retrieval.pb.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client {

// 40 anchors of 8 features in 5 classes, each shifted along its own axis, in chunks of 15 rows.
// With a cell code, which must not be a pq code, the anchors are cut into 10 cells in turn. The
// anchors have no coordinates.
// Without classes the anchors have no labels.
struct PublishedThings {
  static constexpr int kClasses = 5;
  static constexpr int kAnchors = 40;
  static constexpr int kDim = 8;

  PublicParameters parameters;
  v1::GetCollectionResponse collection;
  std::vector<v1::GetAnchorsResponse> chunks;

  // Another seed gives other anchors and another digest.
  explicit PublishedThings(uint64_t embedding_version = 1,
                           std::optional<CellCode> cell_code = std::nullopt, unsigned seed = 1,
                           bool has_classes = true) {
    Anchors anchors{NormalRows(kAnchors, kDim, seed), {}};
    CellPartition partition{.cells = 10, .cell_of_anchor = {}};
    for (int i = 0; i < kAnchors; ++i) {
      if (has_classes) anchors.labels.push_back(i % kClasses);
      anchors.features(i, i % kClasses) += 3;
      partition.cell_of_anchor.push_back(i % 10);
    }
    std::vector<CellPartition> partitions;
    if (cell_code.has_value()) partitions = {partition};
    const EmbeddingSettings settings = has_classes ? EmbeddingSettings() : DefaultSettings({});
    parameters =
        *MakePublicParameters(kUuid, settings, anchors, {}, "vectors", partitions, cell_code);
    ToProto(parameters, collection.mutable_parameters());
    collection.set_fingerprint(Fingerprint(parameters));
    collection.set_name("things");
    collection.set_embedding_version(embedding_version);
    for (int from = 0; from < kAnchors; from += 15) {
      const int rows = std::min(15, kAnchors - from);
      v1::GetAnchorsResponse& chunk = chunks.emplace_back();
      ToProto(FloatMatrix(anchors.features.middleRows(from, rows)), chunk.mutable_features());
      if (!has_classes) continue;
      chunk.mutable_labels()->Assign(anchors.labels.begin() + from,
                                     anchors.labels.begin() + from + rows);
    }
  }
};

// Unit features of an item.
inline Eigen::RowVectorXf RowOfItem(int item) {
  return NormalRows(1, PublishedThings::kDim, 100 + item).row(0).normalized();
}

// A message of version 17 with "item <first>" and the following items.
inline v1::RetrieveCellsResponse CellMessage(const PublicParameters& parameters, int first,
                                             int items, bool with_payloads = false) {
  v1::RetrieveCellsResponse message;
  for (int i = first; i < first + items; ++i) {
    message.add_ids(absl::StrCat("item ", i));
    message.add_labels(i % PublishedThings::kClasses);
    AppendItemCode(parameters, RowOfItem(i), message.mutable_codes());
    if (with_payloads) message.add_payloads(absl::StrCat("{\"i\":", i, "}"));
  }
  message.set_items_version(17);
  return message;
}

// A server that sends these chunks.
inline FetchAnchors Sends(std::vector<v1::GetAnchorsResponse> chunks) {
  return [chunks = std::move(chunks)] { return chunks; };
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_TESTING_PUBLISHED_THINGS_H_
