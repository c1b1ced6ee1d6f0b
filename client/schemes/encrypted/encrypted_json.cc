#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "client/schemes/encrypted/encrypted_search.h"
#include "common/embedding/setting_names.h"

namespace privatemail::client {

void AddEncryptedJson(const SearchResponse& response, const SearchResult& result,
                      nlohmann::json* json) {
  nlohmann::json tables = nlohmann::json::array();
  for (const std::string& digest : result.encrypted->tables) tables.push_back(ToHex(digest));
  const EncryptedGuarantee& guarantee = *result.encryption;
  json->update({{"guarantee",
                 {{"kind", guarantee.kind},
                  {"bits", guarantee.bits},
                  {"assumption", guarantee.assumption},
                  {"source", guarantee.source}}},
                {"metric", NameIn(kMetricNames, response.parameters.metric)},
                {"candidates", result.encrypted->items},
                {"items_version", result.encrypted->items_version},
                {"tables", std::move(tables)},
                {"delta", result.encrypted->delta},
                {"targets", response.results.size()},
                {"timings",
                 {{"encryption_ms", result.times.prepare_ms},
                  {"answer_ms", result.times.answer_ms},
                  {"decryption_ms", result.times.finish_ms}}}});
  (*json)["bytes"].update({{"keys", result.bytes.keys},
                           {"table", result.bytes.table},
                           {"payloads", result.bytes.payloads}});
}

}  // namespace privatemail::client
