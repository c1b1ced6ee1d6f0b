#include "client/schemes/search_interval.h"

#include <algorithm>
#include <bit>

#include "common/embedding/public_parameters.h"
#include "common/lattice/scores.h"

namespace privatemail::client {

std::chrono::milliseconds SearchInterval(const SearchWork& work) {
  const int64_t k = std::min<int64_t>(kMaxNeighbors, work.blocks * lattice::kDegree);
  const int64_t log_2k = std::bit_width(static_cast<uint64_t>(k - 1)) + 1;
  const int64_t of_query_us = work.blocks * (500 + 20 * log_2k) + k;
  return std::chrono::milliseconds(10 + work.queries * of_query_us / 1000 +
                                   (work.payload_bytes + work.filtered_bytes) / 20'000);
}

}  // namespace privatemail::client
