// Channel credentials of the client.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_CREDENTIALS_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// "the server's certificate has the fingerprint HEX, but --trust names HEX": how a pinned
// certificate's verifier refuses another one.
inline constexpr absl::string_view kFingerprintMismatch =
    "the server's certificate has the fingerprint ";
inline constexpr absl::string_view kTrustNames = ", but --trust names ";

// TLS that trusts the options' authorities, or exactly the certificate of the options' fingerprint,
// with the caller's certificate and its key on every call if there are such; or plaintext. Errors:
// see Transport::Create.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ConnectionOptions& options);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_CREDENTIALS_H_
