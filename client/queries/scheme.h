// The schemes of private queries, by name.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_SCHEME_H_
#define PRIVATEMAIL_CLIENT_QUERIES_SCHEME_H_

#include <map>
#include <string>

namespace privatemail::client {

enum class Scheme { kAnchored, kCells, kEncrypted, kJoint };

inline const std::map<std::string, Scheme> kSchemeNames = {{"anchored", Scheme::kAnchored},
                                                           {"cells", Scheme::kCells},
                                                           {"encrypted", Scheme::kEncrypted},
                                                           {"joint", Scheme::kJoint}};

inline std::string NameOf(Scheme scheme) {
  for (const auto& [name, named] : kSchemeNames) {
    if (named == scheme) return name;
  }
  return "";
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_SCHEME_H_
