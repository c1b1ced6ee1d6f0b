// Schemes of private queries and their names on the command line.
#ifndef PRIVATEMAIL_CLIENT_CLI_SCHEME_H_
#define PRIVATEMAIL_CLIENT_CLI_SCHEME_H_

#include <algorithm>
#include <map>
#include <string>

namespace privatemail::client::cli {

enum class Scheme { kAnchored, kCells, kJoint };

inline const std::map<std::string, Scheme> kSchemeNames = {
    {"anchored", Scheme::kAnchored}, {"cells", Scheme::kCells}, {"joint", Scheme::kJoint}};

inline std::string NameOf(Scheme scheme) {
  return std::find_if(kSchemeNames.begin(), kSchemeNames.end(),
                      [&](const auto& named) { return named.second == scheme; })
      ->first;
}

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_SCHEME_H_
