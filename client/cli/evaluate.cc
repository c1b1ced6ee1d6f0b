// Starts privatemail-evaluate, which is a program of its own because its noise is seeded: such
// noise must not be in a program that has a network channel.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"

namespace privatemail::client::cli {
namespace {

// Beside this program, wherever both were installed. Returns only where that fails.
absl::Status Become(const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / "privatemail-evaluate").string();
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  if (!error) ::execv(program.c_str(), raw.data());
  return absl::FailedPreconditionError(
      absl::StrCat("cannot start ", program, ": ", error ? error.message() : std::strerror(errno)));
}

// What follows goes to the program as it is, --help included.
void Add(CLI::App& app, Context& context, const char* name, const char* description,
         std::vector<std::string> first) {
  CLI::App* command = app.add_subcommand(name, description);
  command->set_help_flag();
  command->prefix_command();
  command->callback([&context, command, first] {
    context.run = [command, first] {
      std::vector<std::string> arguments = first;
      for (const std::string& word : command->remaining()) arguments.push_back(word);
      return Become(arguments);
    };
  });
}

}  // namespace

void AddEvaluateCommands(CLI::App& app, Context& context) {
  Add(app, context, "evaluate",
      "Rerun the papers' experiments on your data, and see what recall owes to what "
      "(privatemail-evaluate)",
      {});
  Add(app, context, "tune",
      "Search for settings on rows of your own; on public anchors that spends no budget "
      "(privatemail-evaluate --tune)",
      {"--tune"});
}

}  // namespace privatemail::client::cli
