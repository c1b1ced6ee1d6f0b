// The short help of a command, which fits on a screen. Both programs show all options with -v.
#ifndef PRIVATEMAIL_COMMON_BASE_SHORT_HELP_H_
#define PRIVATEMAIL_COMMON_BASE_SHORT_HELP_H_

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace privatemail {

// The group of options that few need, which the short help leaves out.
inline constexpr char kRareOptions[] = "Rarely needed";

// Whether the words ask for all options. The parser stops at --help, before it reads -v.
inline bool WantsAllOptions(int argc, const char* const* argv) {
  return std::any_of(argv, argv + argc,
                     [](std::string_view word) { return word == "-v" || word == "--verbose"; });
}

// The usage, and the first sentence on each option but the rare ones.
class ShortFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* command) const override {
    return FirstSentence(command->get_description()) + "\n";
  }
  std::string make_positionals(const CLI::App*) const override { return ""; }
  std::string make_group(std::string group, bool,
                         std::vector<const CLI::Option*> options) const override {
    std::string text;
    for (const CLI::Option* option : options) {
      if (group == kRareOptions || option->check_lname("help") || option->check_lname("version")) {
        continue;
      }
      text += make_option(option, /*is_positional=*/false);
    }
    return text;
  }
  std::string make_help(const CLI::App* command, std::string name,
                        CLI::AppFormatMode mode) const override {
    const std::string help = CLI::Formatter::make_help(command, std::move(name), mode);
    return absl::StrReplaceAll(help, {{"\n\n\n", "\n\n"}});  // where rare options were
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string usual = option->get_default_str();
    return absl::StrCat(option->get_type_name().empty() ? "" : " ", option->get_type_name(),
                        usual.empty() ? "" : "=", usual);
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return FirstSentence(option->get_description());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return absl::StrFormat("  %-12s%s\n", command->get_name(),
                           FirstSentence(command->get_description()));
  }
  std::string make_footer(const CLI::App* command) const override {
    std::string path = command->get_name();
    while ((command = command->get_parent()) != nullptr) {
      path = absl::StrCat(command->get_name(), " ", path);
    }
    return absl::StrCat("All options and details: ", path, " --help -v\n");
  }

 private:
  static std::string FirstSentence(const std::string& text) {
    return text.substr(0, text.find(". "));
  }
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_SHORT_HELP_H_
