#include "client/schemes/encrypted/encrypted_search.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/schemes/encrypted/encrypted_messages.h"
#include "client/schemes/request_checks.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

struct EncryptedSearchState : SearchState {
  size_t first = 0;  // target of the message
  std::vector<EncryptedState> queries;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SchemeSearch>> EncryptedSearch::Create(
    EncryptedClient client, std::shared_ptr<const EncryptedSession> session,
    const SearchRequest& request, const ClientLimits& limits, AddKnownBlocks add_known_blocks) {
  std::unique_ptr<EncryptedSearch> search(new EncryptedSearch(
      std::move(client), std::move(session), request, limits, std::move(add_known_blocks)));
  const EncryptedCollection& collection = search->client_.collection();
  EncryptedRanking& ranking = search->ranking_;
  ranking = {.k = request.k, .with_payloads = request.with_payloads.value_or(false)};
  if (!request.filter.empty()) {
    PM_ASSIGN_OR_RETURN(search->filter_, PayloadFilter::Parse(request.filter));
  }
  PM_RETURN_IF_ERROR(CheckTargets(request, collection.dimensions, collection.metric));
  for (const SearchTarget& target : request.targets) {
    EncryptedRanking own{.k = request.k, .label = target.label};
    PM_RETURN_IF_ERROR(search->client_.CheckRanking(own));
  }
  const bool with_payloads = ranking.with_payloads || search->filter_.has_value();
  PM_RETURN_IF_ERROR(
      search->client_.CheckAnswerMemory(request.targets.size(), with_payloads, limits.max_memory));
  search->expectation_.targets_per_message = search->client_.queries_per_message();
  return search;
}

absl::StatusOr<PreparedSearch> EncryptedSearch::Prepare(size_t first, size_t count,
                                                        const ChargeFunction&, BitSource& bits) {
  auto message = std::make_unique<v1::SearchEncryptedRequest>();
  message->set_collection(request_.collection);
  message->set_fingerprint(client_.collection().fingerprint);
  message->set_delta(static_cast<uint32_t>(session_->delta()));
  message->set_keys_digest(session_->keys_digest());
  message->set_with_payloads(ranking_.with_payloads || filter_.has_value());
  add_known_blocks_(message.get());
  auto state = std::make_unique<EncryptedSearchState>();
  state->first = first;
  for (size_t i = first; i < first + count; ++i) {
    PM_ASSIGN_OR_RETURN(PreparedEncryptedQuery query,
                        client_.Prepare(request_.targets[i].features, session_, bits));
    *message->add_queries() = ToMessage(std::move(query.request));
    state->queries.push_back(std::move(query.state));
  }
  return PreparedSearch{.message = std::move(message), .state = std::move(state)};
}

SearchWork EncryptedSearch::WorkOf(const SearchAnswer& answer) const {
  const RowTable& table = std::any_cast<const EncryptedExchange&>(answer.value).table;
  const auto targets = std::ssize(request_.targets);
  SearchWork work = RankingWork(table, targets, ranking_.with_payloads);
  if (filter_.has_value()) {
    work.filtered_bytes = CountMessages() * table.payload_bytes() * (1 + filter_->conditions());
  }
  return work;
}

absl::Status EncryptedSearch::Finish(PreparedSearch prepared, const SearchAnswer& answer,
                                     absl::Span<SearchResult> results) const {
  auto& state = static_cast<EncryptedSearchState&>(*prepared.state);
  const auto& [encrypted, table] = std::any_cast<const EncryptedExchange&>(answer.value);
  if (ranking_.with_payloads) {
    // The most that matches can have, whichever rows they are.
    PM_RETURN_IF_ERROR(CheckPayloadMemory(
        std::vector<int64_t>(static_cast<size_t>(request_.k), table.longest_payload()), request_.k,
        request_.targets.size(), limits_.max_memory));
  }
  std::vector<char> is_known(filter_.has_value() ? filter_->paths().size() : 0);
  const auto matches_filter = [&](const std::string& payload) {
    const std::vector<nlohmann::json> values = ValuesAt(filter_->paths(), payload);
    for (size_t path = 0; path < values.size(); ++path) {
      is_known[path] |= static_cast<char>(!values[path].is_discarded());
    }
    return filter_->Matches([&](size_t path) -> const nlohmann::json& { return values[path]; });
  };
  const std::vector<uint32_t> rows =
      CandidateRows(table, filter_.has_value() ? MatchesFilter(matches_filter) : MatchesFilter());
  const auto unknown = std::find(is_known.begin(), is_known.end(), 0);
  std::optional<std::string> unknown_path;
  if (unknown != is_known.end()) {
    unknown_path = filter_->paths()[static_cast<size_t>(unknown - is_known.begin())];
  }
  for (size_t i = 0; i < results.size(); ++i) {
    EncryptedRanking ranking = ranking_;
    ranking.rows = &rows;
    ranking.label = request_.targets[state.first + i].label;
    PM_ASSIGN_OR_RETURN(results[i].matches, client_.Finish(std::move(state.queries[i]),
                                                           encrypted.scores()[i], table, ranking));
    results[i].encryption.emplace();
    results[i].encrypted = {.delta = client_.delta(),
                            .items = encrypted.header().items,
                            .items_version = encrypted.header().items_version,
                            .unknown_path = unknown_path};
  }
  return absl::OkStatus();
}

}  // namespace privatemail::client
