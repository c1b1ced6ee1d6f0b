// Numbers on the command line.
#ifndef PRIVATEMAIL_CLIENT_FLAGS_NUMBERS_H_
#define PRIVATEMAIL_CLIENT_FLAGS_NUMBERS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail::client::cli {

// Every option of the command and of its subcommands that takes a number says what it takes when it
// is given something else. An empty word, as of a variable of the shell that is not set, CLI11
// would read as 0, or as if the option were not there. Called once all options are added; lists
// have a check of their own, below.
void RefuseWhatIsNoNumber(CLI::App& app);

// An option of one or more numbers, separated by commas or by spaces, none of which is empty.
CLI::Option* AddNumbers(CLI::App* command, const std::string& flags, std::vector<double>* numbers,
                        const std::string& description);
CLI::Option* AddNumbers(CLI::App* command, const std::string& flags, std::vector<int64_t>* numbers,
                        const std::string& description);

// An option of a number of bytes: "2500", or with K, M or G, of 1,000 each, "2M", "1.5M".
CLI::Option* AddBytes(CLI::App* command, const std::string& flags, int64_t* bytes,
                      const std::string& description);

// Of "224x112" 224 and 112. INVALID_ARGUMENT naming the option for any other text.
absl::StatusOr<std::pair<int, int>> WidthAndHeight(absl::string_view option,
                                                   absl::string_view text);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_FLAGS_NUMBERS_H_
