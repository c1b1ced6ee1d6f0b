#include "client/search/search_client.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/queries/last_release.h"
#include "client/queries/memory_limit.h"
#include "client/queries/scheme.h"
#include "common/base/status_macros.h"
#include "common/lattice/scores.h"
#include "privatemail/bit_source.h"
#include "privatemail/state_folder.h"

namespace privatemail::client {
namespace {

constexpr int kMaxSends = 3;  // of one message, while the server asks for the keys

absl::Status CheckMemory(int64_t targets, const v1::EncryptedStatus& status, bool with_payloads,
                         int64_t max_memory) {
  const auto rows = static_cast<double>(status.rows());
  const double bytes = static_cast<double>(targets) * (rows / lattice::kDegree + 1) *
                           static_cast<double>(lattice::kAnswerBytes) +
                       static_cast<double>(status.table_bytes()) +
                       (with_payloads ? static_cast<double>(status.payload_bytes()) : 0);
  if (bytes <= static_cast<double>(max_memory)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("max_memory must be at least ", static_cast<int64_t>(bytes), " bytes for ",
                   Counted(static_cast<uint64_t>(targets), "target"), ", but is ", max_memory));
}

// Whether the payloads of the matches fit is decided before it is known which rows match.
absl::Status CheckPayloads(int64_t bytes, int64_t max_memory) {
  if (bytes <= max_memory / kBytesPerPayloadCharacter) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("max_memory must be at least ", kBytesPerPayloadCharacter, " times the ", bytes,
                   " bytes that the payloads of all matches can have, but is ", max_memory));
}

}  // namespace

std::chrono::milliseconds SearchInterval(const SearchWork& work) {
  const int64_t log_2k = std::bit_width(static_cast<uint64_t>(work.k - 1)) + 1;
  const int64_t of_query_us = work.blocks * (500 + 20 * log_2k) + work.k;
  return std::chrono::milliseconds(10 + work.queries * of_query_us / 1000 +
                                   work.payload_bytes / 1'000'000 + work.filtered_bytes / 20'000);
}

int64_t QueriesPerMessage(int64_t dimensions, int delta, int64_t rows) {
  constexpr size_t kQueryBytes = size_t{16} << 20, kScoreBytes = size_t{64} << 20;
  const size_t query = lattice::kSeedBytes + lattice::QueryChunkBytes(dimensions, delta);
  const size_t scores =
      static_cast<size_t>(std::max<int64_t>(1, lattice::CountBlocks(rows))) * lattice::kAnswerBytes;
  return static_cast<int64_t>(
      std::max<size_t>(1, std::min(kQueryBytes / query, kScoreBytes / scores)));
}

absl::StatusOr<std::unique_ptr<SearchClient>> SearchClient::Create(Transport transport,
                                                                   QuerySettings settings) {
  PM_RETURN_IF_ERROR(CreateStateFolder(settings.state_folder));
  return std::unique_ptr<SearchClient>(new SearchClient(std::move(transport), std::move(settings)));
}

SearchClient::SearchClient(Transport transport, QuerySettings settings)
    : process_(::getpid()), transport_(std::move(transport)), settings_(std::move(settings)) {}

SearchClient::~SearchClient() {
  if (::getpid() == process_) WaitForDeparture().IgnoreError();
}

absl::Status SearchClient::CheckProcess() const {
  if (::getpid() == process_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this client belongs to the process that made it, and this one was forked from it: create a "
      "new client here");
}

absl::Status SearchClient::WaitForDeparture() {
  constexpr std::chrono::milliseconds kPollInterval(50);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!arrived_.has_value()) return absl::OkStatus();
  const Clock::time_point departure = NextDeparture(*arrived_, Clock::now(), interval_);
  lock.unlock();
  for (Clock::time_point now = Clock::now(); now < departure; now = Clock::now()) {
    if (transport_.is_cancelled()) return absl::CancelledError("the search was cancelled");
    std::this_thread::sleep_until(std::min(departure, now + kPollInterval));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const EncryptedSession>> SearchClient::SessionOf(int delta) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Session& session = sessions_[delta];
  if (session.keys == nullptr) {
    SecureBits bits;
    PM_ASSIGN_OR_RETURN(session.keys, EncryptedSession::Create(delta, bits));
  }
  return session.keys;
}

std::shared_ptr<RowTables> SearchClient::TablesOf(const std::string& collection_uuid) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<RowTables>& tables = tables_[collection_uuid];
  if (tables == nullptr) {
    tables = std::make_shared<RowTables>(
        RowTableCache(settings_.state_folder, transport_.server(), collection_uuid),
        settings_.limits.max_memory);
  }
  return tables;
}

absl::StatusOr<SearchClient::Prepared> SearchClient::Prepare(
    const v1::GetCollectionResponse& collection, const EncryptedClient& client,
    const std::vector<SearchTarget>& targets, bool with_payloads) {
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const EncryptedSession> session,
                      SessionOf(client.delta()));
  const int64_t share = QueriesPerMessage(client.parameters().feature_dim, client.delta(),
                                          static_cast<int64_t>(collection.encrypted().rows()));
  SecureBits bits;
  Prepared prepared;
  for (const SearchTarget& target : targets) {
    if (prepared.requests.empty() || prepared.requests.back().queries_size() == share) {
      v1::SearchEncryptedRequest& request = prepared.requests.emplace_back();
      request.set_collection(collection.name());
      request.set_fingerprint(collection.fingerprint());
      request.set_delta(static_cast<uint32_t>(session->delta()));
      request.set_keys_digest(session->keys_digest());
      request.set_with_payloads(with_payloads);
    }
    PM_RETURN_IF_ERROR(client.CheckRanking({.label = target.label}));
    PM_ASSIGN_OR_RETURN(PreparedEncryptedQuery query,
                        client.Prepare(target.features, session, bits));
    *prepared.requests.back().add_queries() = std::move(query.request);
    prepared.states.push_back(std::move(query.state));
  }
  return prepared;
}

// Names everything that the server sees, but not the ciphertexts, and nothing that was decrypted.
absl::Status SearchClient::SaveForExplain(const v1::GetCollectionResponse& collection,
                                          const Prepared& prepared,
                                          const std::vector<std::string>& root_digests) const {
  const v1::SearchEncryptedRequest& first = prepared.requests.front();
  uint64_t bytes = 0;
  for (const v1::SearchEncryptedRequest& request : prepared.requests) {
    bytes += request.ByteSizeLong() - request.keys().size();
  }
  nlohmann::json tables = nlohmann::json::array();
  for (const std::string& digest : root_digests) tables.push_back(ToHex(digest));
  const nlohmann::json view = {{"collection", collection.name()},
                               {"digest", ToHex(collection.fingerprint())},
                               {"scheme", NameOf(Scheme::kEncrypted)},
                               {"delta", first.delta()},
                               {"queries", prepared.states.size()},
                               {"messages", prepared.requests.size()},
                               {"bytes", bytes},
                               {"keys_digest", ToHex(first.keys_digest())},
                               {"keys_bytes", lattice::KeysBytes(static_cast<int>(first.delta()))},
                               {"known_blocks", first.known_blocks_size()},
                               {"with_payloads", first.with_payloads()},
                               {"known_payload_blocks", first.known_payload_blocks_size()},
                               {"tables", tables}};
  LastRelease last{.scheme = Scheme::kEncrypted, .collection = collection};
  last.view = view.dump();
  return SaveLastRelease(settings_.state_folder, last);
}

// The same queries and keys each time: nothing is encrypted again.
absl::StatusOr<EncryptedAnswer> SearchClient::Send(v1::SearchEncryptedRequest* request,
                                                   SearchBytes* bytes) {
  const auto session = [&]() -> Session& { return sessions_[static_cast<int>(request->delta())]; };
  for (int sends = 0; sends < kMaxSends; ++sends) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (sends > 0 || !session().uploaded) request->set_keys(session().keys->keys());
    }
    bytes->keys += request->keys().size();
    bytes->queries += request->ByteSizeLong() - request->keys().size();
    absl::StatusOr<EncryptedAnswer> answer = transport_.SearchEncrypted(*request);
    const std::lock_guard<std::mutex> lock(mutex_);
    arrived_ = Clock::now();
    if (!answer.ok()) return answer;
    bytes->table += answer->table_bytes();
    bytes->payloads += answer->payload_bytes();
    bytes->scores += answer->score_bytes();
    if (answer->header().keys_missing()) continue;
    session().uploaded = true;
    return answer;
  }
  return absl::UnavailableError(
      absl::StrCat("the server must keep the evaluation keys of this session, but asked for them ",
                   kMaxSends, " times: it is restarting, or its cache of keys is too small"));
}

absl::StatusOr<SearchAnswer> SearchClient::Search(const std::string& name,
                                                  const std::vector<SearchTarget>& targets,
                                                  const EncryptedRanking& ranking,
                                                  const WarnFunction& warn) {
  PM_RETURN_IF_ERROR(CheckProcess());
  if (targets.empty()) return absl::InvalidArgumentError("targets must be given, but are none");
  PM_RETURN_IF_ERROR(WaitForDeparture());
  const auto count = [this](int more) {
    const std::lock_guard<std::mutex> lock(mutex_);
    searching_ += more;
  };
  count(1);
  const absl::Cleanup end = [&] { count(-1); };

  // Fetch and check. Nothing here depends on a target.
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection, transport_.GetCollection(name));
  PM_ASSIGN_OR_RETURN(const EncryptedClient client, EncryptedClient::Create(collection));
  PM_RETURN_IF_ERROR(client.CheckRanking(ranking));
  const bool with_payloads = ranking.with_payloads || ranking.filter.has_value();
  PM_RETURN_IF_ERROR(CheckMemory(std::ssize(targets), collection.encrypted(), with_payloads,
                                 settings_.limits.max_memory));
  const std::shared_ptr<RowTables> tables = TablesOf(client.parameters().collection_uuid);

  // Encrypt all targets.
  const Clock::time_point start = Clock::now();
  PM_ASSIGN_OR_RETURN(Prepared prepared, Prepare(collection, client, targets, with_payloads));
  tables->AddKnownBlocks(&prepared.requests.front());
  PM_RETURN_IF_ERROR(SaveForExplain(collection, prepared, /*root_digests=*/{}));
  SearchAnswer found;
  found.parameters = client.parameters();
  found.delta = client.delta();
  found.prepare_ms = MillisecondsSince(start);

  // Send all messages, and take their tables.
  const Clock::time_point sent = Clock::now();
  std::vector<Exchanged> exchanged;
  for (v1::SearchEncryptedRequest& request : prepared.requests) {
    if (!exchanged.empty()) tables->AddKnownBlocks(&request);
    PM_ASSIGN_OR_RETURN(EncryptedAnswer answer, Send(&request, &found.bytes));
    PM_ASSIGN_OR_RETURN(RowTable table, tables->Take(answer, warn));
    exchanged.push_back({std::move(answer), std::move(table)});
  }
  const v1::EncryptedSearchHeader& header = exchanged.back().answer.header();
  // The most that matches can have, whichever rows they are.
  int64_t payload_bytes = 0;
  if (ranking.with_payloads) {
    payload_bytes = std::ssize(targets) * ranking.k * exchanged.back().table.longest_payload();
  }
  PM_RETURN_IF_ERROR(CheckPayloads(payload_bytes, settings_.limits.max_memory));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const RowTable& table = exchanged.back().table;
    const int64_t filtered =
        ranking.filter.has_value() ? std::ssize(targets) * table.payload_bytes() : 0;
    const auto own = SearchInterval({.queries = std::ssize(targets),
                                     .blocks = std::ssize(table.blocks()),
                                     .k = ranking.k,
                                     .payload_bytes = payload_bytes,
                                     .filtered_bytes = filtered});
    interval_ = searching_ > 1 ? std::max(interval_, own) : own;
  }
  found.items = header.items();
  found.items_version = header.items_version();
  for (const Exchanged& one : exchanged) {
    std::string digest = RootDigest(one.answer.header());
    const auto& others = found.root_digests;
    if (std::find(others.begin(), others.end(), digest) == others.end()) {
      found.root_digests.push_back(std::move(digest));
    }
  }
  found.answer_ms = MillisecondsSince(sent);
  PM_RETURN_IF_ERROR(SaveForExplain(collection, prepared, found.root_digests));

  // Decrypt and rank. Nothing is sent from here on, and no check depends on what is decrypted.
  const Clock::time_point received = Clock::now();
  size_t target = 0;
  for (const Exchanged& one : exchanged) {
    for (const std::string& scores : one.answer.scores()) {
      EncryptedRanking of_target = ranking;
      if (targets[target].label.has_value()) of_target.label = targets[target].label;
      PM_ASSIGN_OR_RETURN(
          found.matches.emplace_back(),
          client.Finish(std::move(prepared.states[target]), scores, one.table, of_target));
      ++target;
    }
  }
  found.finish_ms = MillisecondsSince(received);
  return found;
}

}  // namespace privatemail::client
