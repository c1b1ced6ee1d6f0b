#include "client/c/privatemail_encrypted.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/c/messages.h"
#include "client/schemes/memory_budget.h"
#include "client/schemes/request_checks.h"
#include "common/base/digests.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/wire/wire_format.h"

namespace privatemail::client {
namespace {

constexpr char kDescribe[] = "/privatemail.v1.RetrievalService/GetCollection";
constexpr char kSearch[] = "/privatemail.v1.EncryptedService/SearchEncrypted";

constexpr int kMaxSends = 3;  // of a message, while the server asks for the keys

const char* CodeName(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case absl::StatusCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case absl::StatusCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case absl::StatusCode::kUnavailable:
      return "UNAVAILABLE";
    default:
      return "DATA_LOSS";
  }
}

// The caller's random bits.
class CallerBits final : public BitSource {
 public:
  explicit CallerBits(const privatemail_options& options) : options_(options) {}

  absl::Status Fill(absl::Span<uint8_t> bytes) override {
    if (options_.fill_random != nullptr) {
      if (options_.fill_random(options_.context, bytes.data(), bytes.size()) == 0) return {};
      return absl::UnavailableError("fill_random has no random bits");
    }
    constexpr size_t kMost = 256;  // that getentropy takes
    for (size_t at = 0; at < bytes.size(); at += kMost) {
      if (::getentropy(bytes.data() + at, std::min(kMost, bytes.size() - at)) == 0) continue;
      return absl::UnavailableError("getentropy has no random bits");
    }
    return {};
  }

 private:
  const privatemail_options options_;
};

// The caller keeps the blocks beyond the session.
class CallerCache final : public BlockCache {
 public:
  Blocks& blocks(Kind kind) { return kinds_[kind].blocks; }

  Blocks Load(Kind kind, int64_t) override { return blocks(kind); }

  absl::Status Save(Kind kind, const std::string& digests, const Blocks& received) override {
    Kept& kept = kinds_[kind];
    if (kept.latest != digests) kept.former = std::exchange(kept.latest, digests);
    kept.blocks.insert(received.begin(), received.end());
    std::erase_if(kept.blocks, [&](const auto& entry) {
      return !Has(kept.latest, entry.first) && !Has(kept.former, entry.first);
    });
    return {};
  }

  absl::Status Clear() override {
    kinds_.clear();
    return {};
  }

 private:
  struct Kept {
    Blocks blocks;
    std::string latest, former;  // digests of the last two tables
  };

  static bool Has(const std::string& digests, const std::string& digest) {
    for (size_t at = 0; at < digests.size(); at += kBlockDigestBytes) {
      if (digests.compare(at, kBlockDigestBytes, digest) == 0) return true;
    }
    return false;
  }

  std::map<Kind, Kept> kinds_;
};

struct Keys {
  std::shared_ptr<const EncryptedSession> session;
  bool uploaded = false;  // the server has the evaluation keys
};

struct Session {
  Session(std::string collection, const privatemail_options& options)
      : name(std::move(collection)),
        bits(options),
        max_memory(static_cast<int64_t>(options.max_memory_bytes)) {}

  const std::string name;
  CallerBits bits;
  const int64_t max_memory;
  std::map<int, Keys> keys;  // by delta
  std::optional<DescribedCollection> described;
  std::shared_ptr<CallerCache> cache;  // of the collection of the last description
  std::shared_ptr<RowTables> tables;
  uint64_t items = 0, items_version = 0;
  std::string root_digest = std::string(kBlockDigestBytes, '\0');
  std::chrono::milliseconds interval = SearchInterval({});
};

// A message to some targets, and what came of it.
struct Exchange {
  size_t first = 0;
  RequestHalves request = {};
  std::vector<EncryptedState> states = {};
  std::optional<EncryptedAnswer> answer = std::nullopt;
  std::optional<RowTable> table = std::nullopt;
};

class Search {
 public:
  Search(std::shared_ptr<Session> session, SearchRequest request)
      : session_(std::move(session)),
        request_(std::move(request)),
        memory_("the answers of this search", session_->max_memory) {}

  absl::Status Next(bool again, privatemail_call* call);
  absl::Status Take(absl::string_view message);
  // The match of this rank; null: there are fewer.
  absl::StatusOr<const Match*> Find(size_t target, size_t rank);

 private:
  absl::Status Describe(absl::string_view message);
  absl::Status Open();
  absl::Status Prepare(size_t first);
  // Whether the message has its answer, and not the request for the keys.
  absl::StatusOr<bool> Complete();
  void Finish();

  const std::shared_ptr<Session> session_;
  const SearchRequest request_;
  MemoryBudget memory_;
  std::optional<EncryptedClient> client_;
  Keys* keys_ = nullptr;
  std::vector<Exchange> exchanges_;
  std::string bytes_;   // of the call
  bool taken_ = false;  // the description
  int sends_ = 0;       // of the last message
  bool is_done_ = false;
  std::map<size_t, std::vector<Match>> matches_;  // by target
};

absl::Status Search::Next(bool again, privatemail_call* call) {
  *call = {};
  if (!taken_) {
    if (!bytes_.empty() && !again) {
      return absl::DataLossError("the server ended the call without an answer");
    }
    WireWriter request;
    request.AddBytes(1, session_->name);
    bytes_ = std::move(request.message);
  } else if (!is_done_) {
    size_t next = 0;  // target
    bool complete = true;
    if (!exchanges_.empty()) {
      Exchange& last = exchanges_.back();
      next = last.first + last.states.size();
      if (again) {
        last.answer.emplace(last.states.size(), *request_.with_payloads, session_->max_memory);
        complete = false;
      } else {
        PM_ASSIGN_OR_RETURN(complete, Complete());
        if (!complete) bytes_ = last.request.WithKeys(keys_->session->keys());
      }
    } else if (!again) {
      PM_RETURN_IF_ERROR(Open());
    } else {
      return absl::FailedPreconditionError("the call has its answer");
    }
    if (complete && next == request_.targets.size()) {
      Finish();
    } else if (complete) {
      PM_RETURN_IF_ERROR(Prepare(next));
    }
  }
  call->interval_ms = session_->interval.count();
  if (is_done_) return {};
  call->method = taken_ ? kSearch : kDescribe;
  call->request = reinterpret_cast<const uint8_t*>(bytes_.data());
  call->request_size = bytes_.size();
  return {};
}

absl::Status Search::Take(absl::string_view message) {
  if (bytes_.empty() || is_done_) return absl::FailedPreconditionError("no call waits for answers");
  if (!taken_) return Describe(message);
  if (exchanges_.empty()) return absl::DataLossError("the description must be one message");
  PM_ASSIGN_OR_RETURN(AnswerPart part, ParseAnswerPart(message));
  return exchanges_.back().answer->Add(std::move(part), message.size());
}

absl::Status Search::Describe(absl::string_view message) {
  PM_ASSIGN_OR_RETURN(DescribedCollection described, ParseCollection(message, session_->name));
  const bool is_same = session_->described.has_value() &&
                       session_->described->collection.uuid == described.collection.uuid;
  session_->described = std::move(described);
  taken_ = true;
  if (is_same) return {};
  session_->cache = std::make_shared<CallerCache>();
  session_->tables = std::make_shared<RowTables>(session_->cache, session_->max_memory);
  return {};
}

// Makes all checks that can refuse the request, before any query is sent.
absl::Status Search::Open() {
  PM_ASSIGN_OR_RETURN(client_, EncryptedClient::Create(session_->described->collection));
  const EncryptedCollection& collection = client_->collection();
  PM_RETURN_IF_ERROR(CheckTargets(request_, collection.dimensions, collection.metric));
  for (const SearchTarget& target : request_.targets) {
    PM_RETURN_IF_ERROR(client_->CheckRanking({.k = request_.k, .label = target.label}));
  }
  PM_RETURN_IF_ERROR(client_->CheckAnswerMemory(request_.targets.size(), *request_.with_payloads,
                                                session_->max_memory));
  keys_ = &session_->keys[client_->delta()];
  if (keys_->session == nullptr) {
    PM_ASSIGN_OR_RETURN(keys_->session, EncryptedSession::Create(client_->delta(), session_->bits));
  }
  return {};
}

absl::Status Search::Prepare(size_t first) {
  const size_t end = std::min(request_.targets.size(),
                              first + static_cast<size_t>(client_->queries_per_message()));
  Exchange& exchange = exchanges_.emplace_back(Exchange{.first = first});
  std::vector<EncryptedQuery> queries;
  for (size_t target = first; target < end; ++target) {
    PM_ASSIGN_OR_RETURN(
        PreparedEncryptedQuery query,
        client_->Prepare(request_.targets[target].features, keys_->session, session_->bits));
    queries.push_back(std::move(query.request));
    exchange.states.push_back(std::move(query.state));
  }
  exchange.request =
      SerializeRequest(client_->collection(), *keys_->session, queries,
                       session_->tables->Known(*request_.with_payloads), *request_.with_payloads);
  bytes_ = exchange.request.WithKeys(keys_->uploaded ? "" : keys_->session->keys());
  exchange.answer.emplace(end - first, *request_.with_payloads, session_->max_memory);
  sends_ = 0;
  return {};
}

absl::StatusOr<bool> Search::Complete() {
  Exchange& exchange = exchanges_.back();
  EncryptedAnswer& answer = *exchange.answer;
  PM_RETURN_IF_ERROR(answer.CheckComplete());
  if (answer.header().keys_missing) {
    if (++sends_ == kMaxSends) {
      return absl::UnavailableError(absl::StrCat(
          "the server must keep the evaluation keys of this session, but asked for them ",
          kMaxSends, " times"));
    }
    answer = EncryptedAnswer(exchange.states.size(), *request_.with_payloads, session_->max_memory);
    return false;
  }
  keys_->uploaded = true;
  PM_RETURN_IF_ERROR(memory_.Reserve(static_cast<int64_t>(answer.memory())));
  PM_ASSIGN_OR_RETURN(exchange.table, session_->tables->Take(&answer, [](const std::string&) {}));
  session_->items = answer.header().items;
  session_->items_version = answer.header().items_version;
  session_->root_digest =
      Sha256::Of(answer.header().table_digests + answer.header().payload_digests);
  return true;
}

// The interval grows with the work of the largest answer.
void Search::Finish() {
  is_done_ = true;
  const auto targets = static_cast<int64_t>(request_.targets.size());
  for (const Exchange& one : exchanges_) {
    session_->interval = SearchInterval(RankingWork(*one.table, targets, *request_.with_payloads));
  }
}

absl::StatusOr<const Match*> Search::Find(size_t target, size_t rank) {
  if (!is_done_) return absl::FailedPreconditionError("the search has not been answered");
  if (target >= request_.targets.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target must be less than ", request_.targets.size(), ", but is ", target));
  }
  if (!matches_.contains(target)) {
    Exchange& exchange = *std::find_if(exchanges_.rbegin(), exchanges_.rend(),
                                       [&](const Exchange& one) { return one.first <= target; });
    const size_t query = target - exchange.first;
    EncryptedRanking ranking{.k = request_.k,
                             .with_payloads = *request_.with_payloads,
                             .label = request_.targets[target].label};
    if (ranking.with_payloads) {
      // The most that matches can have, whichever rows they are.
      PM_RETURN_IF_ERROR(CheckPayloadMemory(
          std::vector<int64_t>(static_cast<size_t>(request_.k), exchange.table->longest_payload()),
          request_.k, request_.targets.size(), session_->max_memory));
    }
    PM_ASSIGN_OR_RETURN(matches_[target], client_->Finish(std::move(exchange.states[query]),
                                                          exchange.answer->scores()[query],
                                                          *exchange.table, ranking));
  }
  const std::vector<Match>& matches = matches_[target];
  return rank < matches.size() ? &matches[rank] : nullptr;
}

}  // namespace
}  // namespace privatemail::client

struct privatemail_session {
  std::shared_ptr<privatemail::client::Session> session;
  std::string error = {};
};

struct privatemail_search {
  privatemail::client::Search search;
  std::string error = {};
  privatemail_error failed = nullptr;  // the first error, which stays
};

namespace {

using privatemail::client::BlockCache;
using privatemail::client::Match;

constexpr char kNoMemory[] = "RESOURCE_EXHAUSTED: no memory is left";

// The error of what `run` returns or throws, kept in *text.
template <typename Run>
privatemail_error Call(std::string* text, Run run) noexcept {
  try {
    const absl::Status status = run();
    if (status.ok()) return nullptr;
    *text = absl::StrCat(privatemail::client::CodeName(status.code()), ": ", status.message());
    return text->c_str();
  } catch (...) {
    return kNoMemory;
  }
}

template <typename Run>
privatemail_error CallOnce(privatemail_search* search, Run run) noexcept {
  if (search->failed == nullptr) search->failed = Call(&search->error, run);
  return search->failed;
}

BlockCache::Kind KindOf(int payloads) {
  return payloads != 0 ? BlockCache::Kind::kPayloads : BlockCache::Kind::kTable;
}

absl::Status CheckDescribed(const privatemail::client::Session& session) {
  if (session.described.has_value()) return {};
  return absl::FailedPreconditionError("the collection has not been described yet");
}

}  // namespace

privatemail_error privatemail_session_new(const char* collection,
                                          const privatemail_options* options,
                                          privatemail_session** session) {
  *session = nullptr;
  privatemail_options chosen = options == nullptr ? privatemail_options{} : *options;
  if (chosen.max_memory_bytes == 0)
    chosen.max_memory_bytes = sizeof(void*) < 8 ? 1U << 28 : 1U << 30;
  if (chosen.max_memory_bytes > INT64_MAX) return "INVALID_ARGUMENT: max_memory_bytes is too large";
  if (collection == nullptr || *collection == '\0') {
    return "INVALID_ARGUMENT: collection must be given, but is empty";
  }
  std::string unused;
  return Call(&unused, [&]() -> absl::Status {
    *session =
        new privatemail_session{std::make_shared<privatemail::client::Session>(collection, chosen)};
    return {};
  });
}

void privatemail_session_free(privatemail_session* session) { delete session; }

privatemail_error privatemail_session_describe(privatemail_session* session,
                                               privatemail_collection* collection) {
  return Call(&session->error, [&]() -> absl::Status {
    const privatemail::client::Session& held = *session->session;
    PM_RETURN_IF_ERROR(CheckDescribed(held));
    const auto& [described, extractor] = *held.described;
    *collection = {.uuid = described.uuid.c_str(),
                   .extractor = extractor.c_str(),
                   .dimensions = static_cast<uint32_t>(described.dimensions),
                   .metric = static_cast<uint32_t>(described.metric),
                   .delta = static_cast<uint32_t>(described.delta),
                   .rows = described.rows,
                   .items = held.items,
                   .items_version = held.items_version,
                   .root_digest = {}};
    std::memcpy(collection->root_digest, held.root_digest.data(), held.root_digest.size());
    return {};
  });
}

privatemail_error privatemail_session_get_block(privatemail_session* session, int payloads,
                                                size_t index, privatemail_block* block) {
  *block = {};
  return Call(&session->error, [&]() -> absl::Status {
    PM_RETURN_IF_ERROR(CheckDescribed(*session->session));
    const BlockCache::Blocks& blocks = session->session->cache->blocks(KindOf(payloads));
    if (index >= blocks.size()) return {};
    const auto& [digest, content] = *std::next(blocks.begin(), static_cast<int64_t>(index));
    block->content = reinterpret_cast<const uint8_t*>(content.data());
    block->size = content.size();
    block->digest = reinterpret_cast<const uint8_t*>(digest.data());
    return {};
  });
}

privatemail_error privatemail_session_add_block(privatemail_session* session, int payloads,
                                                const uint8_t* content, size_t size) {
  return Call(&session->error, [&]() -> absl::Status {
    PM_RETURN_IF_ERROR(CheckDescribed(*session->session));
    std::string bytes(reinterpret_cast<const char*>(content), size);
    std::string digest = privatemail::Sha256::Of(bytes);
    session->session->cache->blocks(KindOf(payloads)).emplace(std::move(digest), std::move(bytes));
    return {};
  });
}

privatemail_error privatemail_search_new(privatemail_session* session,
                                         const privatemail_query* query,
                                         privatemail_search** search) {
  *search = nullptr;
  return Call(&session->error, [&]() -> absl::Status {
    privatemail::client::SearchRequest request;
    request.collection = session->session->name;
    request.k = query->k;
    request.with_payloads = query->with_payloads != 0;
    for (size_t i = 0; i < query->count; ++i) {
      privatemail::client::SearchTarget& target = request.targets.emplace_back();
      target.features = Eigen::Map<const Eigen::RowVectorXf>(
          query->targets + i * query->dimensions, static_cast<Eigen::Index>(query->dimensions));
      if (query->labels != nullptr) target.label = query->labels[i];
    }
    PM_RETURN_IF_ERROR(CheckTargetValues(request));
    *search = new privatemail_search{{session->session, std::move(request)}};
    return {};
  });
}

privatemail_error privatemail_search_next(privatemail_search* search, int again,
                                          privatemail_call* call) {
  return CallOnce(search, [&] { return search->search.Next(again != 0, call); });
}

privatemail_error privatemail_search_take(privatemail_search* search, const uint8_t* message,
                                          size_t size) {
  return CallOnce(search, [&] {
    return search->search.Take({reinterpret_cast<const char*>(message), size});
  });
}

privatemail_error privatemail_search_match(privatemail_search* search, size_t target, size_t rank,
                                           privatemail_match* match) {
  *match = {};
  return CallOnce(search, [&]() -> absl::Status {
    PM_ASSIGN_OR_RETURN(const Match* found, search->search.Find(target, rank));
    if (found == nullptr) return {};
    const bool has_label = found->label != privatemail::kNoLabel;
    *match = {.id = found->id.c_str(),
              .id_size = found->id.size(),
              .payload = found->payload.c_str(),
              .payload_size = found->payload.size(),
              .similarity = *found->similarity,
              .squared_distance = found->squared_distance,
              .label = has_label ? found->label : 0,
              .has_label = has_label ? 1 : 0};
    return {};
  });
}

void privatemail_search_free(privatemail_search* search) { delete search; }
