// What a report says of itself: what was measured, and with which settings.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_ABOUT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_ABOUT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// For the head of the report, sizes of all splits among it. Errors of MakeSplit.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> About(const Study& study);

// All of the study under the names of the command line, numbers with every digit, and what no
// option changes: version, scaling and start of the iteration, the data's digest.
std::vector<std::pair<std::string, std::string>> SettingsOf(const Study& study);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_ABOUT_H_
