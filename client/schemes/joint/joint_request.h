// The request of a joint query, for the client and for tests. Not installed.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_REQUEST_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_REQUEST_H_

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "privatemail/joint_client.h"
#include "privatemail/joint_scheme.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The request that carries a release: a function of the release and public values alone. Errors of
// PostProcess.
absl::StatusOr<v1::RetrieveRequest> PackRequest(const ServedCollection& served,
                                                const JointScheme& scheme,
                                                const FloatMatrix& release,
                                                const QueryOptions& options);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_REQUEST_H_
