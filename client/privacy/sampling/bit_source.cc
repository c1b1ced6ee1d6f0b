#include "privatemail/bit_source.h"

#include <openssl/err.h>
#include <openssl/rand.h>

#include "absl/strings/str_cat.h"

namespace privatemail::client {

absl::Status SecureBits::Fill(absl::Span<uint8_t> bytes) {
  // Takes the size as it is: RAND_priv_bytes takes an int, which a cast would make of any size.
  if (RAND_priv_bytes_ex(nullptr, bytes.data(), bytes.size(), /*strength=*/0) != 1) {
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
    return absl::UnavailableError(absl::StrCat("no secure random bits: ", reason));
  }
  return absl::OkStatus();
}

}  // namespace privatemail::client
