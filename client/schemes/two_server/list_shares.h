// Shares of the selection of one list, and the list from the two answers (Chor, Goldreich,
// Kushilevitz, Sudan 1995). Not installed.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_TWO_SERVER_LIST_SHARES_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_TWO_SERVER_LIST_SHARES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "privatemail/two_server_image.h"

namespace privatemail::client {

// Fresh r of `lists` uniform bits for A and r xor e_list for B, ceil(lists / 8) bytes each; the
// bits beyond are 0. list < lists. Errors of `bits`.
absl::StatusOr<Halves<std::string>> ShareSelection(int64_t lists, int64_t list, BitSource& bits);

// The xor of texts of one length.
std::string XorBytes(const std::string& a, const std::string& b);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_TWO_SERVER_LIST_SHARES_H_
