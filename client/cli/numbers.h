// Parsing and validation of the words of a command line, most of them numbers.
#ifndef PRIVATEMAIL_CLIENT_CLI_NUMBERS_H_
#define PRIVATEMAIL_CLIENT_CLI_NUMBERS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace privatemail::client::cli {

// Makes every option of the command and its subcommands refuse an empty word (an unset shell
// variable), every numeric one other text, and every one whose text is sent (positional ones,
// --collection, --cursor) what is not UTF-8, with a message that says what it takes. CLI11 would
// read an empty word as 0 or as no option. Call it after all options are added; lists of AddNumbers
// check themselves.
void RequireValidWords(CLI::App& app);

// An option of one or more numbers, separated by commas or spaces.
CLI::Option* AddNumbers(CLI::App* command, const std::string& flags, std::vector<double>* numbers,
                        const std::string& description);
CLI::Option* AddNumbers(CLI::App* command, const std::string& flags, std::vector<int64_t>* numbers,
                        const std::string& description);

// An option of a number of bytes, with decimal suffixes K, M and G: "2500", "1.5M".
CLI::Option* AddBytes(CLI::App* command, const std::string& flags, int64_t* bytes,
                      const std::string& description);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_NUMBERS_H_
