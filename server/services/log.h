// Log lines of the daemon. Never given a vector, a payload or the content of a slot.
#ifndef PRIVATEMAIL_SERVER_SERVICES_LOG_H_
#define PRIVATEMAIL_SERVER_SERVICES_LOG_H_

#include "absl/strings/string_view.h"

namespace privatemail {

enum class LogLevel { kInfo, kWarning, kError };

// One line to stderr, in one write, so that lines of several threads do not mix:
// "2026-01-31T12:00:00.123Z INFO text". What could break the line is escaped, so `text` may hold
// what a peer sent.
void Log(LogLevel level, absl::string_view text);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_LOG_H_
