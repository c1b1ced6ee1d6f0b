// Log lines of the daemon. Never given a vector, a payload, the content of a slot or a key.
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

// Lines below `least` are dropped from now on. info and text before the first call.
void SetLog(LogLevel least, LogFormat format);

// One line to stderr, in one write, so that lines of several threads do not mix:
// "2026-01-31T12:00:00.123Z INFO text rpc=Retrieve", values with anything but ordinary characters
// in quotes; or {"time":..., "level":..., "text":..., "rpc":...}. What could break the line is
// escaped, so text and values may hold what a peer sent. Thread-safe.
void Log(LogLevel level, absl::string_view text, const LogFields& fields = {});

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_LOG_H_
