// The SDK of the anchored scheme: a request and a secret state out of a query. No network inside.
#ifndef PRIVATEMAIL_ANCHORED_CLIENT_H_
#define PRIVATEMAIL_ANCHORED_CLIENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "privatemail/ledger.h"
#include "privatemail/anchored_scheme.h"
#include "privatemail/joint_client.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// One collection, ready for private queries by the anchored scheme: what JointClient is for the
// joint one, with the same requests and answers. Immutable and thread-safe.
class AnchoredClient : public SlotSchemeClientBase<AnchoredScheme> {
 public:
  // From what GetCollection and GetAnchors returned. Errors as JointClient::Create and
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
  using SlotSchemeClientBase::SlotSchemeClientBase;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_ANCHORED_CLIENT_H_
