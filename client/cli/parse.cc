#include "client/cli/parse.h"

#include <algorithm>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace privatemail::client::cli {
namespace {

// Levenshtein's distance: letters to insert, delete or replace.
size_t EditDistance(absl::string_view from, absl::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

// What is wrong when `command` was given a word where it needs one of its subcommands.
std::string WrongSubcommand(const CLI::App& app, const CLI::App& command) {
  const std::vector<const CLI::App*> known =
      command.get_subcommands([](const CLI::App*) { return true; });
  // Extra words of a subcommand fall through to the outermost command.
  const std::vector<std::string> extra = app.remaining(/*recurse=*/true);
  if (known.empty() || extra.empty() || absl::StartsWith(extra[0], "-")) return "";
  const CLI::App* nearest =
      *std::min_element(known.begin(), known.end(), [&](const CLI::App* one, const CLI::App* two) {
        return EditDistance(extra[0], one->get_name()) < EditDistance(extra[0], two->get_name());
      });
  return absl::StrCat("there is no command \"", extra[0], "\"; did you mean \"",
                      nearest->get_name(), "\"?");
}

// The flag of a parameter: its name, but for two that are shorter on the command line.
std::string FlagOf(absl::string_view parameter) {
  if (parameter == "kernel_bandwidth") return "--bandwidth";
  if (parameter == "embedding_dim") return "--dim";
  return absl::StrCat(parameter.size() == 1 ? "-" : "--",
                      absl::StrReplaceAll(parameter, {{"_", "-"}}));
}

}  // namespace

const CLI::App& ChosenCommand(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : ChosenCommand(*chosen.front());
}

absl::Status WithFlagName(const absl::Status& status, const CLI::App& command) {
  const absl::string_view message = status.message();
  const absl::string_view parameter = message.substr(0, message.find(' '));
  const absl::string_view rest = message.substr(parameter.size());
  const bool says = absl::StartsWith(rest, " must ") || absl::StartsWith(rest, " is of no use ");
  if (!absl::IsInvalidArgument(status) || parameter.empty() || parameter[0] == '-' || !says) {
    return status;
  }
  const std::string flag = FlagOf(parameter);
  if (command.get_option_no_throw(flag) == nullptr) return status;
  return absl::InvalidArgumentError(absl::StrCat(flag, rest));
}

std::optional<int> Parse(CLI::App& app, Context& context, int argc, char** argv) {
  // Known also where the parser gives up before it comes to the flag.
  context.json = std::any_of(argv, argv + argc,
                             [](const char* word) { return absl::string_view(word) == "--json"; });
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const std::string wrong = WrongSubcommand(app, ChosenCommand(app));
    PrintError(absl::InvalidArgumentError(wrong.empty() ? error.what() : wrong), context.json);
    std::cerr << "Run with --help for more information.\n";
    return kExitUsage;
  }
}

}  // namespace privatemail::client::cli
