// Conversion between absl::Status and grpc::Status, and limits that both sides share.
#ifndef PRIVATEMAIL_COMMON_RPC_STATUS_H_
#define PRIVATEMAIL_COMMON_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"

namespace privatemail {

// Longest status message in bytes. It travels in a header, where a byte takes up to three, and may
// repeat what a peer sent.
inline constexpr size_t kMaxStatusMessageBytes = 1000;

// Largest message in bytes that client and server accept.
inline constexpr int kMaxMessageBytes = 64 << 20;

// Trailing metadata of a RESOURCE_EXHAUSTED that passes with time: whole milliseconds to wait.
inline constexpr char kRetryAfterMetadata[] = "retry-after-ms";

// Details of the server's own statuses without the problem of a field. Those that gRPC or a proxy
// makes have no details.
inline constexpr char kOwnStatusDetails[] = "privatemail";

// The codes have the same numbers on both sides. The problem of a field travels as the details,
// unless it is longer than a message may be.
inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string details = FieldPayloadOf(status);
  return grpc::Status(
      static_cast<grpc::StatusCode>(status.raw_code()),
      TruncateUtf8(status.message(), kMaxStatusMessageBytes),
      details.empty() || details.size() > kMaxStatusMessageBytes ? kOwnStatusDetails : details);
}

// Whether the other side itself made the status, and not gRPC or a proxy.
inline bool IsOwnStatus(const grpc::Status& status) { return !status.error_details().empty(); }

// A code that gRPC does not define becomes UNKNOWN, with its number in the message.
inline absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = status.error_code();
  if (code < 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
    return absl::UnknownError(absl::StrCat("status code ", code, ": ", status.error_message()));
  }
  absl::Status converted(static_cast<absl::StatusCode>(code), status.error_message());
  SetFieldPayload(status.error_details(), &converted);
  return converted;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_RPC_STATUS_H_
