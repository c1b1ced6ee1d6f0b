// The table of settings, from which flags, configuration files and their documentation are made.
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
// Pointer to the field of DaemonOptions; the alternative is the setting's type.
using SettingSlot = std::variant<std::string*, bool*, int64_t*, double*>;

struct Setting {
  const char* key;  // in a configuration file; the flag is --key with '-' for '_'
  SettingSlot (*slot)(DaemonOptions& options);
  bool live;  // a reload changes it, otherwise only a restart
  const char* help;
  double min = 0;                         // of numbers
  double max = 0;                         // of numbers
  std::vector<std::string> choices = {};  // of texts; empty: any

  std::string Flag() const;   // "--max-k"
  std::string Range() const;  // "an integer between 1 and 10000", "true or false", "a text"
  SettingValue ValueIn(const DaemonOptions& options) const;
};

// As messages show it: texts in single quotes.
std::string ToText(const SettingValue& value);

// In order of documentation.
const std::vector<Setting>& Settings();

// Assigns a value of the setting's type; integers are also accepted for floating-point settings.
// `name`: the setting as the user typed it. INVALID_ARGUMENT, with *options unchanged: "max_k must
// be an integer between 1 and 10000, but is 0".
absl::Status Assign(const Setting& setting, absl::string_view name, const SettingValue& value,
                    DaemonOptions* options);

// Assign from the text of a flag.
absl::Status AssignText(const Setting& setting, absl::string_view name, absl::string_view text,
                        DaemonOptions* options);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONFIG_SETTINGS_H_
