// How a server tells a caller who calls too often when to call again.
#ifndef PRIVATEMAIL_COMMON_RPC_RETRY_AFTER_H_
#define PRIVATEMAIL_COMMON_RPC_RETRY_AFTER_H_

namespace privatemail {

// Trailing metadata of a RESOURCE_EXHAUSTED that time alone heals: milliseconds, a whole number.
inline constexpr char kRetryAfterMetadata[] = "retry-after-ms";

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_RPC_RETRY_AFTER_H_
