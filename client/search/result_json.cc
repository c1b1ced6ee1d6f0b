#include "client/search/result_json.h"

#include <nlohmann/json.hpp>
#include <string>

#include "client/search/scheme_table.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/search.h"

namespace privatemail::client {

nlohmann::json ToJson(const Guarantee& guarantee) {
  nlohmann::json json = {{"epsilon", guarantee.epsilon},
                         {"delta", guarantee.delta},
                         {"neighbours", guarantee.neighbours},
                         {"proven", guarantee.proven},
                         {"source", guarantee.source}};
  if (guarantee.radius.has_value()) json["radius"] = *guarantee.radius;
  if (!guarantee.metric.empty()) json["metric"] = guarantee.metric;
  if (guarantee.gaussian_mu.has_value()) json["gaussian_mu"] = *guarantee.gaussian_mu;
  return json;
}

nlohmann::json ToJson(const Budget& budget) {
  return {{"epsilon", budget.epsilon}, {"delta", budget.delta}};
}

nlohmann::json ToJson(const LedgerEntry& entry) {
  return {{"spent", ToJson(entry.spent())},
          {"left", ToJson(entry.left())},
          {"charged_ahead", entry.charged_ahead}};
}

nlohmann::json LabelJson(int32_t label) {
  return label == kNoLabel ? nlohmann::json() : nlohmann::json(label);
}

namespace {

nlohmann::json ClassJson(const PublicParameters& parameters, int32_t label) {
  const absl::StatusOr<int64_t> slot = parameters.SlotOf(label);
  if (slot.ok()) return parameters.ClassName(*slot);
  const std::optional<std::string> name = parameters.NameOf(label);
  return name.has_value() ? nlohmann::json(*name) : nlohmann::json();
}

nlohmann::json ToJson(const std::vector<Match>& matches, const PublicParameters& parameters) {
  nlohmann::json json = nlohmann::json::array();
  for (const Match& match : matches) {
    json.push_back({{"id", match.id},
                    {"label", LabelJson(match.label)},
                    {"class", ClassJson(parameters, match.label)},
                    {"squared_distance", match.squared_distance},
                    {"payload", match.payload.empty() ? nlohmann::json()
                                                      : nlohmann::json::parse(match.payload)}});
    if (match.similarity.has_value()) json.back()["similarity"] = *match.similarity;
  }
  return json;
}

}  // namespace

nlohmann::json ToJson(const SearchResponse& response, const std::string& collection,
                      size_t target) {
  const SearchResult& result = response.results[target];
  nlohmann::json json = {{"query", result.target},
                         {"collection", collection},
                         {"scheme", NameOf(response.scheme)},
                         {"matches", ToJson(result.matches, response.parameters)},
                         {"warnings", response.warnings},
                         {"bytes", {{"up", result.bytes.up}, {"down", result.bytes.down}}}};
  if (result.guarantee.has_value()) json["guarantee"] = ToJson(*result.guarantee);
  if (result.ledger.has_value()) json["ledger"] = ToJson(*result.ledger);
  EntryOf(response.scheme).add_json(response, result, &json);
  return json;
}

absl::StatusOr<nlohmann::json> ToJson(const LastSearch& last) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  PM_ASSIGN_OR_RETURN(nlohmann::json json, EntryOf(last.scheme).explain(last, parameters));
  json["collection"] = last.collection.name();
  json["digest"] = ToHex(last.collection.fingerprint());
  json["scheme"] = NameOf(last.scheme);
  return json;
}

absl::StatusOr<std::string> SearchClient::Explain(const std::string& state_folder,
                                                  const std::string& collection) {
  PM_ASSIGN_OR_RETURN(const LastSearch last, LoadLastSearch(state_folder, collection));
  PM_ASSIGN_OR_RETURN(const nlohmann::json json, ToJson(last));
  return json.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

}  // namespace privatemail::client
