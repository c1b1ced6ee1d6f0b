#include "client/cli/parse.h"

#include <algorithm>
#include <iostream>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace privatemail::client::cli {
namespace {

// The Levenshtein distance: characters to insert, delete or replace.
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

std::vector<const CLI::App*> Subcommands(const CLI::App& command) {
  // Without hidden commands and option groups, which have no name.
  return command.get_subcommands([](const CLI::App* child) {
    return !child->get_group().empty() && !child->get_name().empty();
  });
}

// Appends the commands of `parent`, each after those that it is part of: "collection info".
void AppendCommands(const CLI::App& parent, const std::string& path,
                    std::vector<std::string>* commands) {
  for (const CLI::App* child : Subcommands(parent)) {
    commands->push_back(path + child->get_name());
    AppendCommands(*child, path + child->get_name() + " ", commands);
  }
}

void AppendOptions(const CLI::App& command, std::set<std::string>* names) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names->insert("--" + name);
  }
  for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (child->get_name().empty()) AppendOptions(*child, names);  // an option group
  }
}

// The options of the command and of all commands that it is part of.
std::vector<std::string> Options(const CLI::App& command) {
  std::set<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    AppendOptions(*app, &names);
  }
  return {names.begin(), names.end()};
}

// "; did you mean \"collection list\" or \"key list\"?"; empty if no candidate's last word is
// similar. Of equally similar candidates at most three.
std::string Suggestion(absl::string_view mistyped, const std::vector<std::string>& candidates) {
  size_t best = std::max<size_t>(2, mistyped.size() / 3);
  std::vector<std::string> nearest;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(mistyped, candidate.substr(candidate.rfind(' ') + 1));
    if (distance > best) continue;
    if (distance < best) nearest.clear();
    best = distance;
    nearest.push_back(absl::StrCat("\"", candidate, "\""));
  }
  constexpr size_t kMaxShown = 3;
  nearest.resize(std::min(nearest.size(), kMaxShown));
  return nearest.empty() ? ""
                         : absl::StrCat("; did you mean ", absl::StrJoin(nearest, " or "), "?");
}

// The message for an unknown command or option; empty: the mistake is another one.
std::string UnknownWord(CLI::App& app) {
  const CLI::App& command = *ChosenCommand(app);
  // Extra words of a subcommand fall through to the outermost command.
  const std::vector<std::string> extra = app.remaining(/*recurse=*/true);
  if (extra.empty()) return "";
  if (absl::StartsWith(extra[0], "-")) {
    double number = 0;
    const std::string option = extra[0].substr(0, extra[0].find('='));
    if (absl::SimpleAtod(option, &number) || !absl::StartsWith(option, "--")) return "";
    return absl::StrCat("there is no option ", option, Suggestion(option, Options(command)));
  }
  std::vector<std::string> commands;
  AppendCommands(command, "", &commands);
  if (commands.empty()) return "";
  return absl::StrCat("there is no command \"", extra[0], "\"", Suggestion(extra[0], commands));
}

// One case of the script: the words that may follow `path`.
void AppendCase(const CLI::App& command, const std::string& path, std::string* script) {
  absl::StrAppend(script, "    \"", path, "\") words=\"");
  for (const CLI::App* child : Subcommands(command))
    absl::StrAppend(script, child->get_name(), " ");
  absl::StrAppend(script, absl::StrJoin(Options(command), " "), "\" ;;\n");
  for (const CLI::App* child : Subcommands(command)) {
    AppendCase(*child, path + " " + child->get_name(), script);
  }
}

// A completion script for bash with the commands and options of the app.
std::string BashCompletion(const CLI::App& app) {
  std::vector<std::string> commands;
  AppendCommands(app, "", &commands);
  std::string script =
      absl::StrCat("# bash completion of ", app.get_name(), "\n_", app.get_name(),
                   "() {\n"
                   "  local word path=\"\" words=\"\" commands=\"| ",
                   absl::StrJoin(commands, "| "),
                   "|\"\n"
                   "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
                   "    [[ $commands == *\"|$path $word|\"* ]] && path=\"$path $word\"\n"
                   "  done\n"
                   "  case \"$path\" in\n");
  AppendCase(app, "", &script);
  absl::StrAppend(&script,
                  "  esac\n"
                  "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
                  "}\n"
                  "complete -o default -F _",
                  app.get_name(), " ", app.get_name(), "\n");
  return script;
}

// The commands by their groups, and where the rest is found.
std::string ShortHelp(const CLI::App& app) {
  std::string text = absl::StrCat(app.get_description(), "\nUsage: ", app.get_name(),
                                  " COMMAND ...; each has --help\n\n");
  std::string group;
  for (const CLI::App* command : app.get_subcommands(/*filter=*/{})) {
    if (command->get_group().empty()) continue;  // hidden
    if (command->get_group() == group) {
      absl::StrAppend(&text, ", ", command->get_name());
      continue;
    }
    absl::StrAppendFormat(&text, "%s  %-9s %s", group.empty() ? "" : "\n", command->get_group(),
                          command->get_name());
    group = command->get_group();
  }
  return absl::StrCat(text, "\n\nShared options: ",
                      "--server HOST:PORT, --trust FINGERPRINT or --ca FILE, --key-file FILE, ",
                      "--state FOLDER, --json, -v\n", app.get_name(),
                      " -v --help describes all commands and shared options.\n", app.get_footer(),
                      "\n");
}

// Without the options that few need.
class ShortFormatter : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group == kRareOptions) {
      return absl::StrCat("\nWith -v --help: ", options.size(), " more options\n");
    }
    return CLI::Formatter::make_group(group, is_positional, options);
  }
};

}  // namespace

CLI::App* ChosenCommand(CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? &app : ChosenCommand(*chosen.front());
}

std::optional<int> Parse(CLI::App& app, Context& context, int argc, char** argv) {
  // The parser may fail before it reaches the flag.
  context.json = std::any_of(argv, argv + argc,
                             [](const char* word) { return absl::string_view(word) == "--json"; });
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp& help) {
    const bool verbose = std::any_of(argv, argv + argc, [](const char* word) {
      return absl::string_view(word) == "-v" || absl::string_view(word) == "--verbose";
    });
    if (verbose) return app.exit(help);
    if (app.get_subcommands().empty()) {
      std::cout << ShortHelp(app);
      return 0;
    }
    ChosenCommand(app)->formatter(std::make_shared<ShortFormatter>());
    return app.exit(help);
  } catch (const CLI::Success& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    const std::string unknown = UnknownWord(app);
    PrintError(absl::InvalidArgumentError(unknown.empty() ? error.what() : unknown), context.json);
    std::cerr << "Run with --help for more information.\n";
    return kExitUsage;
  }
}

void AddCompletionCommand(CLI::App& app, Context& context) {
  CLI::App* completion = AddCommand(app, "completion", "Completion scripts for shells");
  completion->group("");  // hidden
  completion->require_subcommand(1);
  CLI::App* bash = AddCommand(*completion, "bash", "Print a completion script for bash");
  bash->callback([&app, &context] {
    context.run = [&app] {
      std::cout << BashCompletion(app);
      return absl::OkStatus();
    };
  });
}

}  // namespace privatemail::client::cli
