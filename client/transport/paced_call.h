// Calls that keep to the pace which the server allows the caller's key.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_PACED_CALL_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_PACED_CALL_H_

#include <grpcpp/client_context.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace privatemail::client {

// Makes a call, and makes it again after the wait that the server asks for as long as it refuses it
// for the rate of the key (RESOURCE_EXHAUSTED with kRetryAfterMetadata). Returns the last refusal
// when the wait would outlast `patience`, which bounds all tries together, and any other status at
// once. When to go on depends on what the server said and on nothing else.
absl::Status CallWithRateLimitRetry(absl::Duration patience,
                       absl::FunctionRef<absl::Status(grpc::ClientContext*)> call);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_PACED_CALL_H_
