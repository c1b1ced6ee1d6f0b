// Command line and configuration file of privatemaild.
#ifndef PRIVATEMAIL_SERVER_DAEMON_COMMAND_LINE_H_
#define PRIVATEMAIL_SERVER_DAEMON_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/config/options.h"

namespace privatemail::server {

// The parsed command line; a reload applies it again over a changed file.
struct CommandLine {
  std::string config_file;                    // empty: none
  bool check_config = false;                  // check, print the effective options, and exit
  std::map<std::string, std::string> values;  // flag text by setting key

  // Adds one flag per setting. The command line must outlive the parser.
  void AddFlags(CLI::App* app);

  // The message for an unknown option of a command line that the parser refused; empty: the mistake
  // is another one.
  static std::string UnknownWord(const CLI::App& app);

  struct ReadResult {
    DaemonOptions options;  // defaults, overridden by the file, overridden by flags
    Problems problems;      // INVALID_ARGUMENT naming flag or file, line and key
    // False: there is no such file or it is not TOML, or it cannot be read (FAILED_PRECONDITION).
    bool file_is_read = true;
  };
  // Skips wrong settings and does not run CheckOptions.
  ReadResult Read() const;

  // The options if neither Read nor CheckOptions finds a problem; otherwise all problems.
  absl::StatusOr<DaemonOptions> EffectiveOptions() const;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_COMMAND_LINE_H_
