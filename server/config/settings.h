// The table of settings, from which flags, configuration files and their documentation are made.
#ifndef PRIVATEMAIL_SERVER_CONFIG_SETTINGS_H_
#define PRIVATEMAIL_SERVER_CONFIG_SETTINGS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/options.h"

namespace privatemail::server {

struct Setting {
  // Pointer to the field of DaemonOptions; the alternative is the setting's type.
  using Field = std::variant<std::string*, bool*, int64_t*, double*>;

  const char* key;  // in a configuration file; the flag is --key with '-' for '_'
  Field (*field)(DaemonOptions& options);
  bool live;  // a reload changes it, otherwise only a restart
  const char* help;
  double min = 0;                         // of numbers
  double max = 0;                         // of numbers
  std::vector<std::string> choices = {};  // of texts; empty: any

  std::string Flag() const;   // "--max-k"
  std::string Range() const;  // "an integer between 1 and 10000", "true or false", "a text"
  bool IsFlag() const;        // true or false
  std::string ValueIn(const DaemonOptions& options) const;  // as the text of a flag
};

// In order of documentation.
const std::vector<Setting>& Settings();

// Assigns the value in the text of a flag. `name`: the setting as the user typed it.
// INVALID_ARGUMENT, with *options unchanged: "--max-k must be an integer between 1 and 10000, but
// is '0'".
absl::Status Assign(const Setting& setting, absl::string_view name, absl::string_view text,
                    DaemonOptions* options);

// Assigns the settings that `text` (any bytes) of a configuration file names and leaves the others
// unchanged. The file is TOML, one key per setting, no tables. Returns one problem per wrong line;
// correct lines are applied. `file`: name of the text in messages, such as "daemon.toml line 5:
// 'max_kk' is no setting".
// INVALID_ARGUMENT, with `options` unchanged: no such file.
absl::StatusOr<Problems> ParseConfig(absl::string_view text, absl::string_view file,
                                     DaemonOptions* options);

// A configuration file that yields these options, with every setting documented: the output of
// --check-config, and deploy/privatemaild.toml.
std::string PrintConfig(const DaemonOptions& options);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONFIG_SETTINGS_H_
