// The SDK of the anchored scheme: a request and a secret state out of a query. No network inside.
#ifndef PRIVATEMAIL_CLIENT_ANCHORED_CLIENT_H_
#define PRIVATEMAIL_CLIENT_ANCHORED_CLIENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/bit_source.h"
#include "client/privacy/ledger.h"
#include "client/release/anchored_scheme.h"
#include "client/retrieval_client.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

// One collection, ready for private queries by the anchored scheme: what RetrievalClient is for the
// joint one, with the same requests and answers. Immutable and thread-safe.
class AnchoredClient : public SlotClientOf<AnchoredScheme> {
 public:
  // From what GetCollection and GetAnchors returned. Errors as RetrievalClient::Create and
  // AnchoredScheme::Create.
  static absl::StatusOr<AnchoredClient> Create(
      const v1::GetCollectionResponse& collection,
      const std::vector<v1::GetAnchorsResponse>& anchors,
      const std::optional<Anchors>& dummies = std::nullopt);

  // AnchoredScheme::Release, whose rows are finished coordinates: PostProcessing::kServer is of no
  // use. The state's sensitivity and noise are in the scaled units of AnchoredRelease.
  absl::StatusOr<PreparedQuery> Prepare(const Target& target, const QueryOptions& options,
                                        Ledger& ledger, BitSource& bits) const override;
  absl::StatusOr<Matrix> Coordinates(const v1::RetrieveRequest& request) const override;

 private:
  using SlotClientOf::SlotClientOf;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_ANCHORED_CLIENT_H_
