// The one table of settings: flags, configuration files and their documentation all come from it.
#ifndef PRIVATEMAIL_SERVER_CONFIG_SETTINGS_H_
#define PRIVATEMAIL_SERVER_CONFIG_SETTINGS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/config/options.h"

namespace privatemail::server {

using SettingValue = std::variant<std::string, bool, int64_t, double>;
// Where in the options a setting lives; its alternative is the setting's type.
using SettingSlot = std::variant<std::string*, bool*, int64_t*, double*>;

struct Setting {
  const char* key;  // in a configuration file; the flag is --key with '-' for '_'
  SettingSlot (*slot)(DaemonOptions& options);
  bool live;  // a reload changes it; otherwise a restart does
  const char* help;
  double least = 0;                       // of numbers
  double most = 0;                        // of numbers
  std::vector<std::string> choices = {};  // of texts; empty: any

  std::string Flag() const;   // "--max-k"
  std::string Range() const;  // "an integer between 1 and 10000", "true or false", "a text"
  SettingValue ValueIn(const DaemonOptions& options) const;
};

// In the order in which they are documented.
const std::vector<Setting>& Settings();

// Sets a value of the setting's own type; a whole number will do for a setting that is a number.
// `name` is what the message calls the setting. INVALID_ARGUMENT: "max_k must be an integer between
// 1 and 10000, but is 0".
absl::Status Assign(const Setting& setting, absl::string_view name, const SettingValue& value,
                    DaemonOptions* options);

// The same from the text of a flag; NaN is no number.
absl::Status AssignText(const Setting& setting, absl::string_view name, absl::string_view text,
                        DaemonOptions* options);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONFIG_SETTINGS_H_
