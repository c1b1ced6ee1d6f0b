// The daemon's log. Callers never pass a vector, a payload, the content of a slot or a key.
#ifndef PRIVATEMAIL_SERVER_SERVICES_LOG_H_
#define PRIVATEMAIL_SERVER_SERVICES_LOG_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace privatemail::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };
using LogFields = std::vector<std::pair<std::string, std::string>>;

// Drops lines below `min_level`. Default: info and text.
void SetLog(LogLevel min_level, LogFormat format);

// Writes one line to stderr in a single write. Text and values are escaped, so they may hold peer
// input. Thread-safe.
//   text  2026-01-31T12:00:00.123Z INFO text rpc=Retrieve   (unusual values are quoted)
//   json  {"time":..., "level":..., "text":..., "rpc":...}
void Log(LogLevel level, absl::string_view text, const LogFields& fields = {});

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_LOG_H_
