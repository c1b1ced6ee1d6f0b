#include "client/transport/paced_call.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/rpc/retry_after.h"

namespace privatemail::client {
namespace {

// A server that asks for no wait at all is not called in a loop.
constexpr absl::Duration kMinWait = absl::Milliseconds(10);

std::optional<absl::Duration> ParseRetryAfter(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(kRetryAfterMetadata);
  if (found == metadata.end()) return std::nullopt;
  int64_t milliseconds = 0;
  const absl::string_view text(found->second.data(), found->second.size());
  if (!absl::SimpleAtoi(text, &milliseconds) || milliseconds < 0) return std::nullopt;
  return std::max(kMinWait, absl::Milliseconds(milliseconds));
}

}  // namespace

absl::Status CallWithRateLimitRetry(absl::Duration patience,
                       absl::FunctionRef<absl::Status(grpc::ClientContext*)> call) {
  const absl::Time deadline = absl::Now() + patience;
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    const absl::Status status = call(&context);
    if (!absl::IsResourceExhausted(status)) return status;
    const std::optional<absl::Duration> wait = ParseRetryAfter(context);
    if (!wait.has_value() || absl::Now() + *wait >= deadline) return status;
    absl::SleepFor(*wait);
  }
}

}  // namespace privatemail::client
