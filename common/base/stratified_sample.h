// Deterministic stratified samples.
#ifndef PRIVATEMAIL_COMMON_BASE_STRATIFIED_SAMPLE_H_
#define PRIVATEMAIL_COMMON_BASE_STRATIFIED_SAMPLE_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace privatemail {

// min(total, count) values of [0, total), ascending: one at random from each of as many ranges of
// equal size, the same on every machine. A period in the rows, such as classes in turn, does not
// show in the sample, as it does in one of every nth row.
inline std::vector<int64_t> StratifiedSample(int64_t total, int64_t count) {
  const int64_t ranges = std::min(total, count);
  std::mt19937_64 bits;  // by its default seed; distributions differ between libraries
  std::vector<int64_t> sample;
  for (int64_t i = 0; i < ranges; ++i) {
    const int64_t first = i * total / ranges, last = (i + 1) * total / ranges;
    sample.push_back(first + static_cast<int64_t>(bits() % static_cast<uint64_t>(last - first)));
  }
  return sample;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_STRATIFIED_SAMPLE_H_
