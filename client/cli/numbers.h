// Numbers on the command line and in what it prints for people.
#ifndef PRIVATEMAIL_CLIENT_CLI_NUMBERS_H_
#define PRIVATEMAIL_CLIENT_CLI_NUMBERS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace privatemail::cli {

// An empty word for a number, as of a variable of the shell that is not set, is refused by every
// option of the command and of its subcommands that takes one: CLI11 reads it as 0, or as if the
// option were not there. Called once all options are added; lists have a check of their own, below.
void RefuseEmptyNumbers(CLI::App& app);

// An option of one or more numbers, separated by commas or by spaces, none of which is empty.
CLI::Option* AddNumbers(CLI::App* command, const std::string& flags, std::vector<double>* numbers,
                        const std::string& description);
CLI::Option* AddNumbers(CLI::App* command, const std::string& flags, std::vector<int64_t>* numbers,
                        const std::string& description);

// "0.1", "3.7306316348144531": the shortest text that reads back as the same number, as JSON has
// it. Fewer digits may be less noise than was computed.
std::string Exactly(double number);

}  // namespace privatemail::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_NUMBERS_H_
