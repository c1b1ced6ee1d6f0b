#include "server/daemon/command_line.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/short_help.h"
#include "common/base/status_macros.h"
#include "common/base/suggestion.h"
#include "server/config/settings.h"

namespace privatemail::server {
namespace {

absl::StatusOr<Problems> ApplyFile(const std::string& path, DaemonOptions* options) {
  if (path.empty()) return Problems();
  const absl::StatusOr<std::string> text = ReadFile("--config", path);
  if (!text.ok()) {
    std::error_code ignored;
    const bool may_come = std::filesystem::is_regular_file(path, ignored);
    return may_come ? text.status() : absl::InvalidArgumentError(text.status().message());
  }
  return ParseConfig(*text, path, options);
}

// The settings that the short help shows.
constexpr absl::string_view kUsual[] = {"data_dir", "listen", "tls_cert",      "tls_key",
                                        "insecure", "http",   "postgres_file", "log_level"};

void AddFlag(const Setting& setting, std::map<std::string, std::string>* values, CLI::App* app) {
  const auto assign = [values, key = std::string(setting.key)](const std::string& text) {
    (*values)[key] = text;
  };
  const std::string help(absl::StripSuffix(setting.help, "."));
  const std::string range = setting.Range();
  CLI::Option* const option =
      setting.IsFlag() ? app->add_flag_callback(
                             setting.Flag(), [assign] { assign("true"); }, help)
                       : app->add_option_function<std::string>(
                                setting.Flag(), assign,
                                range == "a text" ? help : absl::StrCat(help, "; ", range))
                             ->default_str(setting.ValueIn({}));
  if (!absl::c_linear_search(kUsual, setting.key)) option->group(kRareOptions);
}

}  // namespace

void CommandLine::AddFlags(CLI::App* app) {
  app->add_option("--config", config_file,
                  "TOML file with settings named like the flags, '_' for '-'; flags override it");
  app->add_flag("--check-config", check_config,
                "Check the configuration and every file that it names, print what is in force and "
                "end. Exit code 0 when it is good, otherwise 1 or, where starting again would not "
                "help, 2, after all that is wrong");
  for (const Setting& setting : Settings()) AddFlag(setting, &values, app);
}

std::string CommandLine::UnknownWord(const CLI::App& app) {
  const std::vector<std::string> extra = app.remaining();
  if (extra.empty()) return "";
  if (!absl::StartsWith(extra[0], "-")) {
    return absl::StrCat("privatemaild takes no argument \"", extra[0], "\": settings are options");
  }
  std::vector<std::string> flags = {"--config", "--check-config"};
  for (const Setting& setting : Settings()) flags.push_back(setting.Flag());
  const std::string option = extra[0].substr(0, extra[0].find('='));
  return absl::StrCat("there is no option ", option, Suggestion(option, flags));
}

CommandLine::ReadResult CommandLine::Read() const {
  ReadResult result;
  const absl::StatusOr<Problems> file = ApplyFile(config_file, &result.options);
  result.file_is_read = file.ok();
  if (file.ok()) {
    result.problems.Add(*file);
  } else {
    result.problems.Add(file.status());
  }
  for (const Setting& setting : Settings()) {
    const auto given = values.find(setting.key);
    if (given == values.end()) continue;
    result.problems.Add(Assign(setting, setting.Flag(), given->second, &result.options));
  }
  ApplyMemory(&result.options);
  return result;
}

absl::StatusOr<DaemonOptions> CommandLine::EffectiveOptions() const {
  ReadResult result = Read();
  if (result.file_is_read) result.problems.Add(CheckOptions(result.options));
  PM_RETURN_IF_ERROR(result.problems.status());
  return std::move(result.options);
}

}  // namespace privatemail::server
