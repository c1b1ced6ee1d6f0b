// Schemes of private queries and their names on the command line.
#ifndef PRIVATEMAIL_CLIENT_CLI_SCHEME_H_
#define PRIVATEMAIL_CLIENT_CLI_SCHEME_H_

#include <map>
#include <string>

#include "client/flags/names.h"

namespace privatemail::client::cli {

enum class Scheme { kAnchored, kCells, kJoint };

inline const std::map<std::string, Scheme> kSchemeNames = {
    {"anchored", Scheme::kAnchored}, {"cells", Scheme::kCells}, {"joint", Scheme::kJoint}};

inline std::string NameOf(Scheme scheme) { return NameOf(kSchemeNames, scheme); }

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_SCHEME_H_
