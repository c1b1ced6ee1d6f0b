// Checks of a search request that all schemes share.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_REQUEST_CHECKS_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_REQUEST_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/search_request.h"

namespace privatemail::client {

// "lime.npy row 3", or "target 3" without a name. Results and errors name targets like this.
std::string TargetName(const SearchRequest& request, size_t target);

// INVALID_ARGUMENT naming the target: values that no collection accepts: not finite or, if the
// request has an epsilon, whose schemes compare directions, all zero. Call it before anything is
// sent: a fetch without a search would tell that the target was refused.
absl::Status CheckTargetValues(const SearchRequest& request);

// INVALID_ARGUMENT naming the target: features of another number of columns, or that the metric
// cannot rank (CheckHasSimilarity); or no target.
absl::Status CheckTargets(const SearchRequest& request, int64_t columns, Metric metric);

// RESOURCE_EXHAUSTED: the payloads of the matches, parsed to be shown, could exceed max_memory
// whichever k items match each target. What matches decides nothing: a server could give one item
// a long payload and see who complains.
// lengths: of the payloads of all items of an answer. targets: of the whole search.
absl::Status CheckPayloadMemory(std::vector<int64_t> lengths, int64_t k, size_t targets,
                                int64_t max_memory);

// The error of noise that could not be drawn, with the charge named in the message.
absl::Status ChargedWithoutRelease(const absl::Status& status);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_REQUEST_CHECKS_H_
