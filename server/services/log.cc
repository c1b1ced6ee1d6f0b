#include "server/services/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/printable.h"

namespace privatemail::server {
namespace {

std::atomic<LogLevel> min_level = LogLevel::kInfo;
std::atomic<LogFormat> line_format = LogFormat::kText;

constexpr const char* kLevelNames[] = {"DEBUG", "INFO", "WARNING", "ERROR"};

const char* NameOf(LogLevel level) { return kLevelNames[static_cast<size_t>(level)]; }

// Quoted, a value cannot imitate another field.
std::string Quoted(const std::string& value) {
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-' || c == ':' || c == '/';
  });
  return plain ? value : absl::StrCat("\"", absl::CHexEscape(value), "\"");
}

std::string TextLine(absl::string_view time, LogLevel level, absl::string_view text,
                     const LogFields& fields) {
  std::string line = absl::StrCat(time, " ", NameOf(level), " ", Printable(text));
  for (const auto& [name, value] : fields) absl::StrAppend(&line, " ", name, "=", Quoted(value));
  return line;
}

std::string JsonLine(absl::string_view time, LogLevel level, absl::string_view text,
                     const LogFields& fields) {
  nlohmann::ordered_json line = {
      {"time", std::string(time)}, {"level", NameOf(level)}, {"text", std::string(text)}};
  for (const auto& [name, value] : fields) line[name] = value;
  return line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void SetLog(LogLevel min, LogFormat format) {
  min_level = min;
  line_format = format;
}

void Log(LogLevel level, absl::string_view text, const LogFields& fields) {
  if (level < min_level) return;
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  const std::string line =
      absl::StrCat(line_format == LogFormat::kJson ? JsonLine(time, level, text, fields)
                                                   : TextLine(time, level, text, fields),
                   "\n");
  // If stderr is closed there is nowhere to report it.
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace privatemail::server
