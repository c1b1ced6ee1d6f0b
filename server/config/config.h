// The daemon's configuration file: TOML, one key a setting (settings.h), no tables.
#ifndef PRIVATEMAIL_SERVER_CONFIG_CONFIG_H_
#define PRIVATEMAIL_SERVER_CONFIG_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/options.h"
#include "server/config/problems.h"

namespace privatemail::server {

// Changes what the text names and leaves the rest. Pure: any bytes may come in. `file` is what
// messages call the text. Returns every line that is wrong, "daemon.toml line 3: max_k must be an
// integer between 1 and 10000, but is 'many'", "daemon.toml line 5: 'max_kk' is no setting"; the
// others are taken over. INVALID_ARGUMENT, with `options` unchanged: no TOML.
absl::StatusOr<Problems> ParseConfig(absl::string_view text, absl::string_view file,
                                     DaemonOptions* options);

// A configuration file that yields these options, every setting documented. What
// deploy/privatemaild.toml is made of, and what --check-config prints.
std::string PrintConfig(const DaemonOptions& options);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONFIG_CONFIG_H_
