// Channel credentials of the client.
#ifndef PRIVATEMAIL_CLIENT_CREDENTIALS_H_
#define PRIVATEMAIL_CLIENT_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "client/transport.h"

namespace privatemail {

// TLS that trusts the options' authorities, or exactly the certificate of the options' fingerprint,
// with the caller's key on every call if there is one; or plaintext. Errors: see Transport::Create.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ConnectionOptions& options);

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_CREDENTIALS_H_
