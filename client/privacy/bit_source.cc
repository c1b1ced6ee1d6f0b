#include "client/privacy/bit_source.h"

#include <openssl/err.h>
#include <openssl/rand.h>

#include "absl/strings/str_cat.h"

namespace privatemail {

absl::Status SecureBits::Fill(absl::Span<uint8_t> bytes) {
  if (RAND_priv_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
    return absl::UnavailableError(absl::StrCat("no secure random bits: ", reason));
  }
  return absl::OkStatus();
}

}  // namespace privatemail
