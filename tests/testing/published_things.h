// The public messages of a small collection, "things".
#ifndef PRIVATEMAIL_TESTS_TESTING_PUBLISHED_THINGS_H_
#define PRIVATEMAIL_TESTS_TESTING_PUBLISHED_THINGS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/embedding/public_parameters.h"
#include "common/wire/codec.h"
#include "common/wire/parameters_proto.h"
#include "privatemail/v1/retrieval.pb.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client {

// 40 anchors of 8 features in 5 classes, in chunks of 15 rows.
struct PublishedThings {
  static constexpr int kClasses = 5;
  static constexpr int kAnchors = 40;
  static constexpr int kDim = 8;

  v1::GetCollectionResponse collection;
  std::vector<v1::GetAnchorsResponse> chunks;

  explicit PublishedThings(uint64_t embedding_version = 1) {
    Anchors anchors{NormalRows(kAnchors, kDim, 1), {}};
    for (int i = 0; i < kAnchors; ++i) anchors.labels.push_back(i % kClasses);
    const PublicParameters parameters =
        *MakePublicParameters(kUuid, EmbeddingSettings{}, anchors, {}, "vectors");
    ToProto(parameters, collection.mutable_parameters());
    collection.set_fingerprint(Fingerprint(parameters));
    collection.set_name("things");
    collection.set_embedding_version(embedding_version);
    for (int from = 0; from < kAnchors; from += 15) {
      const int rows = std::min(15, kAnchors - from);
      v1::GetAnchorsResponse& chunk = chunks.emplace_back();
      ToProto(FloatMatrix(anchors.features.middleRows(from, rows)), chunk.mutable_features());
      chunk.mutable_labels()->Assign(anchors.labels.begin() + from,
                                     anchors.labels.begin() + from + rows);
    }
  }
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_TESTING_PUBLISHED_THINGS_H_
