// Fuzzes the daemon's configuration. An accepted file is equal after printing and parsing; a
// refused one changes nothing.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/config/settings.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail::server {
namespace {

void Check(absl::string_view text) {
  static const std::string untouched = PrintConfig(DaemonOptions());
  DaemonOptions options;
  const auto wrong = ParseConfig(text, "fuzz.toml", &options);
  const std::string printed = PrintConfig(options);
  const absl::Status status = wrong.ok() ? wrong->status() : wrong.status();
  Require(status.ok() ||
          (absl::IsInvalidArgument(status) && absl::StartsWith(status.message(), "fuzz.toml")));
  if (!wrong.ok()) Require(printed == untouched);
  DaemonOptions again;
  const auto wrong_again = ParseConfig(printed, "printed.toml", &again);
  Require(wrong_again.ok() && wrong_again->all().empty());
  Require(PrintConfig(again) == printed);
}

}  // namespace
}  // namespace privatemail::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  privatemail::server::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
