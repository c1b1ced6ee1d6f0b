#include "server/daemon/command_line.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "server/config/config.h"
#include "server/config/settings.h"

namespace privatemail::server {
namespace {

std::string Description(const Setting& setting) {
  std::string text(absl::StripSuffix(setting.help, "."));
  const SettingValue default_value = setting.ValueIn({});
  const bool number = std::holds_alternative<int64_t>(default_value) ||
                      std::holds_alternative<double>(default_value);
  if (setting.choices.empty() && !number) return text;
  return absl::StrCat(text, "; ", setting.Range());
}

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

void AddFlag(const Setting& setting, std::map<std::string, std::string>* values, CLI::App* app) {
  const std::string key = setting.key;
  const SettingValue default_value = setting.ValueIn({});
  if (std::holds_alternative<bool>(default_value)) {
    app->add_flag_callback(
        setting.Flag(), [values, key] { (*values)[key] = "true"; }, Description(setting));
    return;
  }
  CLI::Option* option = app->add_option_function<std::string>(
      setting.Flag(), [values, key](const std::string& text) { (*values)[key] = text; },
      Description(setting));
  if (const auto* text = std::get_if<std::string>(&default_value)) option->default_str(*text);
  if (const auto* whole = std::get_if<int64_t>(&default_value))
    option->default_str(absl::StrCat(*whole));
  if (const auto* number = std::get_if<double>(&default_value))
    option->default_str(absl::StrCat(*number));
}

}  // namespace

void CommandLine::AddFlags(CLI::App* app) {
  app->add_option("--config", config_file,
                  "TOML file with settings named like the flags, '_' for '-'; flags override it");
  app->add_flag("--check-config", check_config,
                "Check the configuration and every file that it names, print what is in force and "
                "end: 0 when it is good, otherwise 1 or, where starting again would not help, 2, "
                "after all that is wrong");
  for (const Setting& setting : Settings()) AddFlag(setting, &values, app);
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
    result.problems.Add(AssignText(setting, setting.Flag(), given->second, &result.options));
  }
  return result;
}

absl::StatusOr<DaemonOptions> CommandLine::EffectiveOptions() const {
  ReadResult result = Read();
  if (result.file_is_read) result.problems.Add(CheckOptions(result.options));
  PM_RETURN_IF_ERROR(result.problems.status());
  return std::move(result.options);
}

}  // namespace privatemail::server
