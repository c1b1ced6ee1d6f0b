// Validation of the requests of encrypted searches.
#ifndef PRIVATEMAIL_SERVER_SERVICES_ENCRYPTED_REQUEST_H_
#define PRIVATEMAIL_SERVER_SERVICES_ENCRYPTED_REQUEST_H_

#include "absl/status/status.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/encrypted.pb.h"

namespace privatemail::server {

// The most queries of one request. Clients send at most 16 MiB of queries in a message, which are
// 1,598 of the smallest ones.
inline constexpr int kMaxQueriesPerRequest = 4096;
// The most digests of one list of known blocks: those of two billion rows.
inline constexpr int kMaxKnownBlocks = 1 << 20;

// Checks lengths, counts and digests against the collection's parameters, but not the coefficients,
// which lattice::Evaluator checks as it parses them. The collection must have a dimension.
// INVALID_ARGUMENT: a field is malformed, or a count exceeds its limit; the field is named.
absl::Status CheckEncryptedRequest(const v1::SearchEncryptedRequest& request,
                                   const PublicParameters& parameters);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_ENCRYPTED_REQUEST_H_
