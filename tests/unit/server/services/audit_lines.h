// The calls that an audit log tells of.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_AUDIT_LINES_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_AUDIT_LINES_H_

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace privatemail::testing {

// In their order, without the lines that tell of the daemon itself.
inline std::vector<nlohmann::json> CallsIn(const std::string& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> calls;
  for (std::string line; std::getline(file, line);) {
    nlohmann::json entry = nlohmann::json::parse(line);
    if (!entry.contains("event")) calls.push_back(std::move(entry));
  }
  return calls;
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_AUDIT_LINES_H_
