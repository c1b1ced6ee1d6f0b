// The schemes of private queries, by name.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_SCHEME_H_
#define PRIVATEMAIL_CLIENT_QUERIES_SCHEME_H_

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace privatemail::client {

enum class Scheme { kCells, kEncrypted, kJoint };

inline const std::map<std::string, Scheme> kSchemeNames = {
    {"cells", Scheme::kCells}, {"encrypted", Scheme::kEncrypted}, {"joint", Scheme::kJoint}};

inline std::string NameOf(Scheme scheme) {
  for (const auto& [name, named] : kSchemeNames) {
    if (named == scheme) return name;
  }
  return "";
}

// The scheme of queries that name none, for the command line, the page and Python: the first of
// encrypted, joint and cells that the collection offers. offered: its OfferedSchemes.
inline Scheme DefaultScheme(const std::vector<std::string>& offered) {
  for (const Scheme scheme : {Scheme::kEncrypted, Scheme::kJoint}) {
    if (std::find(offered.begin(), offered.end(), NameOf(scheme)) != offered.end()) return scheme;
  }
  return Scheme::kCells;
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_SCHEME_H_
