// Flags and configuration file of privatemaild together.
#ifndef PRIVATEMAIL_SERVER_DAEMON_COMMAND_LINE_H_
#define PRIVATEMAIL_SERVER_DAEMON_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/config/options.h"
#include "server/config/problems.h"

namespace privatemail::server {

// What was typed, kept so that a reload can apply it again over a changed file.
struct CommandLine {
  std::string config_file;                    // empty: none
  bool check_config = false;                  // check and print what is in force, and end
  std::map<std::string, std::string> values;  // text by the setting's key

  // Adds one flag a setting. The command line must outlive the parser.
  void AddFlags(CLI::App* app);

  // Defaults, then the file, then the flags, as far as they can be read; not yet checked as a whole
  // (Contradictions).
  struct Reading {
    DaemonOptions options;
    Problems problems;         // INVALID_ARGUMENT naming flag or file, line and key
    bool file_is_read = true;  // or there is none; else FAILED_PRECONDITION, or it is no TOML
  };
  Reading Read() const;

  // The same where nothing is wrong with them, nor with all of them together; otherwise every
  // problem at once.
  absl::StatusOr<DaemonOptions> Effective() const;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_COMMAND_LINE_H_
