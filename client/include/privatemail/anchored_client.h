// Client of the anchored scheme. Same protocol as joint_client.h.
#ifndef PRIVATEMAIL_ANCHORED_CLIENT_H_
#define PRIVATEMAIL_ANCHORED_CLIENT_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/anchored_scheme.h"
#include "privatemail/bit_source.h"
#include "privatemail/joint_client.h"
#include "privatemail/ledger.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// Client of one collection by the anchored scheme. Held by the client; sees targets only while
// Prepare and AllotClasses run. Immutable, thread-safe, no network.
class AnchoredClient : public SlotSchemeClientBase<AnchoredScheme> {
 public:
  // From the responses of GetCollection and GetAnchors. Errors as JointClient::Create and
  // AnchoredScheme::Create.
  static absl::StatusOr<AnchoredClient> Create(const v1::GetCollectionResponse& collection,
                                               const std::vector<v1::GetAnchorsResponse>& anchors,
                                               const std::optional<Anchors>& dummies = std::nullopt,
                                               const ClientLimits& limits = {});

  // INVALID_ARGUMENT also: PostProcessing::kServer, since the rows are finished. The state's
  // sensitivity and noise are in the scaled units of AnchoredRelease.
  absl::StatusOr<PreparedQuery> Prepare(const Target& target, const QueryOptions& options,
                                        Ledger& ledger, BitSource& bits) const override;
  absl::StatusOr<Matrix> Coordinates(const v1::RetrieveRequest& request) const override;

 private:
  using SlotSchemeClientBase::SlotSchemeClientBase;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_ANCHORED_CLIENT_H_
