// Observation of a running daemon: audit log lines, metrics.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_DAEMON_STATE_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_DAEMON_STATE_H_

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/daemon/http_client.h"

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

// The value of a metric, "privatemail_requests_queued" or with labels; 0 if it is absent.
inline double MetricAt(const std::string& http_address, const std::string& metric) {
  const std::string page = HttpGet(http_address, "/metrics");
  const std::string line = absl::StrCat("\n", metric, " ");
  const size_t at = page.find(line);
  return at == std::string::npos ? 0 : std::atof(page.c_str() + at + line.size());
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_DAEMON_STATE_H_
