// The interval between the messages of two searches, which hides how long ranking took.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_SEARCH_INTERVAL_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_SEARCH_INTERVAL_H_

#include <chrono>
#include <cstdint>

namespace privatemail::client {

// Measures what a search decrypts, ranks and shows once its answers are there. The server knows
// these sizes, and may learn that there is a filter.
struct SearchWork {
  int64_t queries = 1;
  int64_t blocks = 1;          // of 2,048 encrypted scores
  int64_t payload_bytes = 0;   // that the matches could have at most, for every k
  int64_t filtered_bytes = 0;  // that a filter reads, once and again for each of its conditions
};

// Messages leave at multiples of this time after the last answer. It is 10 ms; for each query .5 ms
// and .02 ms * log2(2 k) for each block, and a microsecond for each match, where k is the largest
// number of matches that the rows allow: the server does not know k. Further 50 ms for each
// megabyte of payloads that the matches could have, which are copied and parsed, and that a filter
// reads. On an idle machine decryption, ranking and filters take a fraction of it for every order
// of the scores.
std::chrono::milliseconds SearchInterval(const SearchWork& work);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_SEARCH_INTERVAL_H_
