#include "common/base/stratified_sample.h"

#include <algorithm>
#include <random>

namespace privatemail {

std::vector<int64_t> StratifiedSample(int64_t total, int64_t count) {
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
