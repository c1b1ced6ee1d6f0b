// SHAKE128 by OpenSSL, as common/lattice/wire.h wants it.
#ifndef PRIVATEMAIL_COMMON_BASE_SHAKE128_H_
#define PRIVATEMAIL_COMMON_BASE_SHAKE128_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace privatemail {

// Fills `output` with the first `size` bytes of the digest of `input`. False: OpenSSL failed, and
// `output` is undefined.
bool Shake128(std::string_view input, uint8_t* output, size_t size);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_SHAKE128_H_
