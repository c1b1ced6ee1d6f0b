#include "server/services/log.h"

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/printable.h"

namespace privatemail {

void Log(LogLevel level, absl::string_view text) {
  const char* name = level == LogLevel::kInfo      ? "INFO"
                     : level == LogLevel::kWarning ? "WARNING"
                                                   : "ERROR";
  const std::string line =
      absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()), " ",
                   name, " ", Printable(text), "\n");
  // Nobody is left to be told when stderr is gone.
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace privatemail
