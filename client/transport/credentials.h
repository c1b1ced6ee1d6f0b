// Channel credentials of the client.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_CREDENTIALS_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// Parts of the verifier's error for another than the pinned certificate:
// "the server's certificate has the fingerprint HEX, but the trusted one is HEX".
inline constexpr absl::string_view kFingerprintMismatch =
    "the server's certificate has the fingerprint ";
inline constexpr absl::string_view kTrustNames = ", but the trusted one is ";

// The key in options.key_file; empty: none is given. Errors: see Transport::Create.
absl::StatusOr<std::string> ReadAccessKey(const ConnectionOptions& options);

// TLS by the options' authorities or fingerprint, with the client's certificate if given and the
// access key unless it is empty; or plaintext, without either. Errors: see Transport::Create.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ConnectionOptions& options, const std::string& access_key);

// Why --ca trusts no certificate by this machine's clock, and what to do; empty: some are valid
// now.
std::string DescribeAuthorityDates(const ConnectionOptions& options);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_CREDENTIALS_H_
