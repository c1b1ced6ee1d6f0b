#include "client/cli/parse.h"

#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/short_help.h"
#include "common/base/suggestion.h"

namespace privatemail::client::cli {
namespace {

// Words of other programs, and what they are called here.
constexpr std::pair<absl::string_view, absl::string_view> kSynonyms[] = {{"add", "ingest"},
                                                                         {"address", "--server"},
                                                                         {"api-key", "--key-file"},
                                                                         {"describe", "info"},
                                                                         {"find", "query"},
                                                                         {"host", "--server"},
                                                                         {"insert", "ingest"},
                                                                         {"k", "-k"},
                                                                         {"key", "--key-file"},
                                                                         {"limit", "-k"},
                                                                         {"ls", "list"},
                                                                         {"n", "-k"},
                                                                         {"neighbors", "-k"},
                                                                         {"new", "create"},
                                                                         {"remove", "delete"},
                                                                         {"rm", "delete"},
                                                                         {"search", "query"},
                                                                         {"show", "info"},
                                                                         {"token", "--key-file"},
                                                                         {"top", "-k"},
                                                                         {"top-k", "-k"},
                                                                         {"topk", "-k"},
                                                                         {"top_k", "-k"},
                                                                         {"upload", "ingest"},
                                                                         {"upsert", "ingest"},
                                                                         {"url", "--server"},
                                                                         {"where", "--filter"}};

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

// The candidates whose last word is what this one is called here.
std::vector<std::string> MeantBy(absl::string_view word,
                                 const std::vector<std::string>& candidates) {
  std::vector<std::string> meant;
  const absl::string_view plain = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  for (const auto& [other, ours] : kSynonyms) {
    if (plain != other) continue;
    for (const std::string& candidate : candidates) {
      if (candidate.substr(candidate.rfind(' ') + 1) == ours) meant.push_back(candidate);
    }
  }
  return meant;
}

std::string SuggestionFor(absl::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> meant = MeantBy(word, candidates);
  return meant.empty() ? Suggestion(word, candidates) : DidYouMean(meant);
}

// "collection list"; empty for the app.
std::string PathOf(const CLI::App& command) {
  if (command.get_parent() == nullptr) return "";
  const std::string before = PathOf(*command.get_parent());
  return absl::StrCat(before, before.empty() ? "" : " ", command.get_name());
}

// The message for a command or a value that is missing, or an unknown command or option; empty: the
// mistake is another one.
std::string WrongCommand(CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = *ChosenCommand(app);
  // Extra words of a subcommand fall through to the outermost command.
  const std::vector<std::string> extra = app.remaining(/*recurse=*/true);
  const std::string path = PathOf(command);
  if (extra.empty()) {
    const absl::string_view text = error.what();
    const size_t missing = text.find(": 1 required ");
    if (missing != absl::string_view::npos) {
      return absl::StrCat(text.substr(0, missing), " needs a value");
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) return "";
    std::vector<std::string> names;
    for (const CLI::App* child : Subcommands(command)) names.push_back(child->get_name());
    if (names.empty()) return "";
    return absl::StrCat("`", app.get_name(), path.empty() ? "" : " ", path,
                        "` needs a command: ", absl::StrJoin(names, ", "));
  }
  double number = 0;
  if (absl::StartsWith(extra[0], "-") && !absl::SimpleAtod(extra[0], &number)) {
    const std::string option = extra[0].substr(0, extra[0].find('='));
    std::vector<std::string> options = Options(command);
    if (std::find(options.begin(), options.end(), option) != options.end()) {
      return absl::StrCat(option, " must stand after `", path, "`");
    }
    if (command.get_option_no_throw("-k") != nullptr) options.emplace_back("-k");
    return absl::StrCat("there is no option ", option, SuggestionFor(option, options));
  }
  std::vector<std::string> commands;
  AppendCommands(command, path.empty() ? "" : path + " ", &commands);
  if (commands.empty()) {
    return absl::StrCat("`", app.get_name(), " ", path, "` takes no argument \"", extra[0],
                        "\" here");
  }
  return absl::StrCat("there is no command \"", path, path.empty() ? "" : " ", extra[0], "\"",
                      SuggestionFor(extra[0], commands));
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
    if (WantsAllOptions(argc, argv)) return app.exit(help);
    if (app.get_subcommands().empty()) {
      std::cout << ShortHelp(app);
      return 0;
    }
    ChosenCommand(app)->formatter(std::make_shared<ShortFormatter>());
    return app.exit(help);
  } catch (const CLI::Success& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    const std::string wrong = WrongCommand(app, error);
    PrintError(absl::InvalidArgumentError(wrong.empty() ? error.what() : wrong), context.json);
    const std::string path = PathOf(*ChosenCommand(app));
    std::cerr << "`" << app.get_name() << (path.empty() ? "" : " ") << path
              << " --help` says more.\n";
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
