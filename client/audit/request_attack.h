// Attacks on requests as the daemon receives them: their bytes, their sizes and the time that the
// client took to prepare them.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_REQUEST_ATTACK_H_
#define PRIVATEMAIL_CLIENT_AUDIT_REQUEST_ATTACK_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/joint/joint_search.h"
#include "privatemail/search_request.h"
#include "privatemail/v1/encrypted.pb.h"

namespace privatemail::client::audit {

// The message of a search by joint (JointSearch::Prepare) or a planted fault.
using JointRequestFn = std::function<absl::StatusOr<v1::RetrieveRequest>(
    const std::shared_ptr<const JointCollection>& collection, const SearchRequest& request,
    BitSource& bits)>;
absl::StatusOr<v1::RetrieveRequest> PrepareJointRequest(
    const std::shared_ptr<const JointCollection>& collection, const SearchRequest& request,
    BitSource& bits);

// Searches as `privatemail query` makes them, of a collection with the settings of a new one
// (DefaultSettings), for targets of two opposite classes with a label. Attacks:
//   the coordinates of a request, by a linear discriminant that a pilot taught
//   the size of a request
//   the time that its preparation took, next to another
// The claim is that of the charge, which covers no time: a time that shows more is a finding.
// Errors: as JointSearch.
absl::StatusOr<Subject> AttackJointRequest(double epsilon, double delta,
                                           const JointRequestFn& prepare = &PrepareJointRequest);

// The queries of one session for targets, as the server receives them one after another
// (EncryptedClient::Prepare), or a planted fault.
using EncryptedRequestFn = std::function<absl::StatusOr<std::vector<v1::EncryptedQuery>>(
    const std::vector<Eigen::RowVectorXf>& targets, BitSource& bits)>;
absl::StatusOr<std::vector<v1::EncryptedQuery>> PrepareEncryptedQueries(
    const std::vector<Eigen::RowVectorXf>& targets, BitSource& bits);

// Two encrypted queries of one session, the second for one target or its opposite. The claim is
// epsilon 0: nothing may show, but to an attacker of ring-LWE (PRIVACY.md section 9). Attacks:
//   the second ciphertext is nearer to the one message, as if the secret did not cover it
//   the difference of both is, as if they shared their uniform part (rule 1)
//   size and time, as above
absl::StatusOr<Subject> AttackEncryptedQueries(
    const EncryptedRequestFn& prepare = &PrepareEncryptedQueries);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_REQUEST_ATTACK_H_
