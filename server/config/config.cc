#include "server/config/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "server/config/settings.h"

namespace privatemail::server {
namespace {

std::string Location(absl::string_view file, const toml::source_region& source) {
  return absl::StrCat(file, " line ", source.begin.line);
}

absl::StatusOr<const Setting*> FindSetting(absl::string_view key) {
  const std::vector<Setting>& all = Settings();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Setting& one) { return key == one.key; });
  if (found != all.end()) return &*found;
  return absl::InvalidArgumentError(
      absl::StrCat("'", key, "' is no setting",
                   key == "operator" || key == "allow_scores"
                       ? ", because the search at two operators was removed: the scheme encrypted "
                         "finds the exact nearest items at one server"
                       : "; privatemaild --check-config prints all there are"));
}

absl::Status AssignNode(const Setting& setting, const toml::node& node, DaemonOptions* options) {
  if (const auto* text = node.as_string()) return Assign(setting, setting.key, **text, options);
  if (const auto* flag = node.as_boolean()) return Assign(setting, setting.key, **flag, options);
  if (const auto* whole = node.as_integer()) return Assign(setting, setting.key, **whole, options);
  if (const auto* number = node.as_floating_point()) {
    const double zero = 0;  // turns -0 into 0, so that it is not printed as -0
    return Assign(setting, setting.key, **number + zero, options);
  }
  std::ostringstream type;
  type << node.type();
  return absl::InvalidArgumentError(
      absl::StrCat(setting.key, " must be ", setting.Range(), ", but is of type ", type.str()));
}

absl::Status AssignEntry(absl::string_view key, const toml::node& node, DaemonOptions* options) {
  PM_ASSIGN_OR_RETURN(const Setting* setting, FindSetting(key));
  return AssignNode(*setting, node, options);
}

// Reports problems in order of lines; a toml::table iterates by name.
Problems AssignAll(const toml::table& table, absl::string_view file, DaemonOptions* options) {
  std::multimap<toml::source_index, absl::Status> wrong;
  for (const auto& [key, node] : table) {
    const absl::Status assigned =
        AssignEntry(absl::string_view(key.data(), key.length()), node, options);
    if (assigned.ok()) continue;
    wrong.emplace(key.source().begin.line,
                  absl::InvalidArgumentError(
                      absl::StrCat(Location(file, key.source()), ": ", assigned.message())));
  }
  Problems problems;
  for (const auto& [line, problem] : wrong) problems.Add(problem);
  return problems;
}

// Rejects lines that toml++ would parse into deeply nested tables: it recurses without limit for
// dotted keys, so a long key would overflow the stack. No setting needs such lines.
class LineCheck {
 public:
  explicit LineCheck(absl::string_view line) : line_(line) {}

  // Why the line is rejected; empty: accepted.
  absl::string_view Problem() {
    if (line_.size() > kMaxBytes) return "a line must have at most 65536 bytes, but has more";
    for (; at_ < line_.size() && line_[at_] != '#'; ++at_) {
      if (line_[at_] == '.' && ++dots_ > kMaxDots) {
        return "a line must have at most 16 dots outside of quotes, but has more";
      }
      if (absl::StartsWith(line_.substr(at_), "\"\"\"") ||
          absl::StartsWith(line_.substr(at_), "'''")) {
        return "a text must be on one line, but this one is of several";
      }
      if (line_[at_] == '"' || line_[at_] == '\'') SkipText(line_[at_]);
    }
    return "";
  }

 private:
  static constexpr size_t kMaxBytes = 65536;
  static constexpr int kMaxDots = 16;

  void SkipText(char quote) {
    while (++at_ < line_.size() && line_[at_] != quote) {
      if (line_[at_] == '\\' && quote == '"') ++at_;
    }
  }

  const absl::string_view line_;
  size_t at_ = 0;
  int dots_ = 0;
};

absl::Status CheckLines(absl::string_view text, absl::string_view file) {
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view problem = LineCheck(line).Problem();
    if (problem.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(file, " line ", number, ": ", problem));
  }
  return absl::OkStatus();
}

std::string Quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter(toml::value<std::string>(text), toml::format_flags::none);
  return out.str();
}

std::string ToToml(const SettingValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Quoted(*text);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value)) return absl::StrCat(*whole);
  // The shorter form if it reads back as the same value: .1, not .10000000000000001.
  const double number = std::get<double>(value);
  const std::string text = absl::StrFormat("%.15g", number);
  double read = 0;
  return absl::SimpleAtod(text, &read) && read == number ? text : absl::StrFormat("%.17g", number);
}

}  // namespace

absl::StatusOr<Problems> ParseConfig(absl::string_view text, absl::string_view file,
                                     DaemonOptions* options) {
  PM_RETURN_IF_ERROR(CheckLines(text, file));
  try {
    const toml::table table = toml::parse(std::string_view(text.data(), text.size()));
    return AssignAll(table, file, options);
  } catch (const toml::parse_error& error) {
    const std::string_view reason = error.description();
    return absl::InvalidArgumentError(
        absl::StrCat(Location(file, error.source()),
                     ": this is no TOML: ", absl::string_view(reason.data(), reason.size())));
  }
}

std::string PrintConfig(const DaemonOptions& options) {
  std::string text =
      "# Configuration of privatemaild: privatemaild --config FILE. A flag of the same name "
      "(max_k:\n"
      "# --max-k) overrides. SIGHUP reads this file again.\n";
  for (const Setting& setting : Settings()) {
    const std::string range = setting.Range();
    absl::StrAppend(&text, "\n# ", setting.help, "\n# ",
                    range == "a text" ? "" : absl::StrCat("Must be ", range, ". "),
                    setting.live ? "Changed by SIGHUP" : "Changed by a restart", ".\n", setting.key,
                    " = ", ToToml(setting.ValueIn(options)), "\n");
  }
  return text;
}

}  // namespace privatemail::server
