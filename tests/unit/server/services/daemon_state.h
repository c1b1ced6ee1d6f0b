// The lines of the audit log of a running daemon.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_DAEMON_STATE_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_DAEMON_STATE_H_

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/wait_until.h"

namespace privatemail::testing {

// The audited calls in order, without events of the daemon itself.
inline std::vector<nlohmann::json> CallsIn(const std::string& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> calls;
  for (std::string line; std::getline(file, line);) {
    nlohmann::json entry = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (entry.is_object() && !entry.contains("event")) calls.push_back(std::move(entry));
  }
  return calls;
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_DAEMON_STATE_H_
