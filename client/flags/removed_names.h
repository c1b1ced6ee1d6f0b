// Names of commands, options, arguments and values that were removed with the scheme two-server.
#ifndef PRIVATEMAIL_CLIENT_FLAGS_REMOVED_NAMES_H_
#define PRIVATEMAIL_CLIENT_FLAGS_REMOVED_NAMES_H_

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace privatemail::client::cli {

inline constexpr absl::string_view kRemovedNames[] = {
    "image",           "lists",       "mirror",          "mode",         "second",
    "second-ca",       "second-cert", "second-cert-key", "second-trust", "second-server",
    "second-key-file", "trust-again", "two-server"};

// The end of an error about an unknown name, as the command line or Python spells it; empty unless
// the name was removed.
inline std::string RemovedNote(absl::string_view name) {
  const std::string word = absl::StrReplaceAll(absl::StripPrefix(name, "--"), {{"_", "-"}});
  const bool removed = std::find(std::begin(kRemovedNames), std::end(kRemovedNames), word) !=
                       std::end(kRemovedNames);
  return removed ? "; it was removed: scheme encrypted finds the exact nearest items at one server"
                 : "";
}

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_FLAGS_REMOVED_NAMES_H_
