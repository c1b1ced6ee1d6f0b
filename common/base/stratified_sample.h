// Deterministic stratified samples.
#ifndef PRIVATEMAIL_COMMON_BASE_STRATIFIED_SAMPLE_H_
#define PRIVATEMAIL_COMMON_BASE_STRATIFIED_SAMPLE_H_

#include <cstdint>
#include <vector>

namespace privatemail {

// min(total, count) values of [0, total), ascending: one at random from each of as many ranges of
// equal size, the same on every machine. A period in the rows, such as classes in turn, does not
// show in the sample, as it does in one of every nth row.
std::vector<int64_t> StratifiedSample(int64_t total, int64_t count);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_STRATIFIED_SAMPLE_H_
