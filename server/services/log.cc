#include "server/services/log.h"

#include <unistd.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace privatemail {

void Log(LogLevel level, absl::string_view text) {
  const char* name = level == LogLevel::kInfo      ? "INFO"
                     : level == LogLevel::kWarning ? "WARNING"
                                                   : "ERROR";
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    // Escaping every quote would only make messages hard to read.
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      safe += absl::CHexEscape(absl::string_view(&c, 1));
    } else {
      safe += c;
    }
  }
  const std::string line =
      absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()), " ",
                   name, " ", safe, "\n");
  // Nobody is left to be told when stderr is gone.
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace privatemail
