// Results and saved searches as JSON, for the command line, the page and Python.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_RESULT_JSON_H_
#define PRIVATEMAIL_CLIENT_SEARCH_RESULT_JSON_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "client/search/last_search.h"
#include "privatemail/search_result.h"

namespace privatemail::client {

nlohmann::json ToJson(const Guarantee& guarantee);
nlohmann::json ToJson(const Budget& budget);
// {"spent": ..., "left": ..., "charged_ahead": ...}
nlohmann::json ToJson(const LedgerEntry& entry);
nlohmann::json LabelJson(int32_t label);  // null for kNoLabel

// The result of one target that was answered. Private. Payloads were checked: they are JSON.
nlohmann::json ToJson(const SearchResponse& response, const std::string& collection, size_t target);

// The message that the server was sent, row by row or cell by cell. DATA_LOSS: the saved message is
// malformed.
absl::StatusOr<nlohmann::json> ToJson(const LastSearch& last);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_RESULT_JSON_H_
