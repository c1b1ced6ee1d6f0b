// `privatemail query --scheme encrypted`: exact searches under encryption.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_ENCRYPTED_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_ENCRYPTED_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/query_targets.h"
#include "client/search/search_client.h"

namespace privatemail::client::cli {

struct EncryptedQuery {
  std::string collection;
  TargetOptions targets;  // labels: only items with that label; without rows: all of the file
  int64_t k = 8;
  bool with_payloads = false;
  std::string filter;  // JSON; empty: none
};

// Searches for all targets together and prints each answer.
absl::Status QueryEncrypted(const Context& context, EncryptedQuery query);

// What --json prints of target number `index`. Bytes and times but for features are those of all
// targets together. Scores are rounded.
nlohmann::json AnswerJson(const SearchAnswer& answer, const std::string& collection,
                          const std::vector<NamedTarget>& targets, size_t index,
                          const std::vector<std::string>& warnings);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_ENCRYPTED_H_
