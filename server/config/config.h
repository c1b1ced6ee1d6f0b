// The daemon's configuration file: TOML, one key per setting (settings.h), no tables.
#ifndef PRIVATEMAIL_SERVER_CONFIG_CONFIG_H_
#define PRIVATEMAIL_SERVER_CONFIG_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/options.h"

namespace privatemail::server {

// Assigns the settings that `text` (any bytes) names and leaves the others unchanged. Returns one
// problem per wrong line; correct lines are applied. `file`: name of the text in messages, such as
// "daemon.toml line 5: 'max_kk' is no setting".
// INVALID_ARGUMENT, with `options` unchanged: not TOML.
absl::StatusOr<Problems> ParseConfig(absl::string_view text, absl::string_view file,
                                     DaemonOptions* options);

// A configuration file that yields these options, with every setting documented: the output of
// --check-config, and deploy/privatemaild.toml.
std::string PrintConfig(const DaemonOptions& options);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONFIG_CONFIG_H_
