// Flags and configuration file of privatemaild together.
#ifndef PRIVATEMAIL_SERVER_DAEMON_COMMAND_LINE_H_
#define PRIVATEMAIL_SERVER_DAEMON_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/daemon/options.h"

namespace privatemail {

// What was typed, kept so that a reload can apply it again over a changed file.
struct CommandLine {
  std::string config_file;                    // empty: none
  bool check_config = false;                  // check and print what is in force, and end
  std::map<std::string, std::string> values;  // text by the setting's key

  // Adds one flag a setting. The command line must outlive the parser.
  void AddFlags(CLI::App* app);

  // Defaults, then the file, then the flags; not yet checked as a whole (Validate). Names every
  // problem at once: INVALID_ARGUMENT naming flag or file, line and key; FAILED_PRECONDITION: no
  // readable file.
  absl::StatusOr<DaemonOptions> Effective() const;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_DAEMON_COMMAND_LINE_H_
