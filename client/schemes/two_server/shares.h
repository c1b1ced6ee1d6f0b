// The shares of a fetch (Chor, Goldreich, Kushilevitz, Sudan 1995), and what two halves of an
// answer tell together. Not installed.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_TWO_SERVER_SHARES_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_TWO_SERVER_SHARES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "privatemail/two_server_image.h"

namespace privatemail::client {

// Fresh r of `lists` uniform bits for A and r xor e_list for B, ceil(lists / 8) bytes each; the
// bits beyond are 0. list < lists. Errors of `bits`.
absl::StatusOr<Halves<std::string>> ShareSelection(int64_t lists, int64_t list, BitSource& bits);

// The xor of texts of one length: the list, of answers to a fetch.
std::string XorBytes(const std::string& a, const std::string& b);

// The cosine of an item and the query from what each server sent (SentScore), below by at most
// 4.7e-7.
double CombineScores(uint32_t sent_a, uint32_t sent_b);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_TWO_SERVER_SHARES_H_
