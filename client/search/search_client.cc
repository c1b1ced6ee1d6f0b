#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/class_labels.h"
#include "client/schemes/memory_budget.h"
#include "client/schemes/request_checks.h"
#include "client/search/batch.h"
#include "client/search/charge_text.h"
#include "client/search/last_search.h"
#include "client/search/scheme_table.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/items/payload_filter.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/search.h"

namespace privatemail::client {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

absl::Status CheckFingerprint(const SearchRequest& request,
                              const v1::GetCollectionResponse& published) {
  if (!request.fingerprint.has_value() || *request.fingerprint == published.fingerprint()) {
    return absl::OkStatus();
  }
  return FieldError(absl::StatusCode::kFailedPrecondition, "fingerprint",
                    absl::StrCat("that of collection ", published.name(), ", ",
                                 ToHex(published.fingerprint()), " (nothing was spent)"),
                    ToHex(*request.fingerprint));
}

// The parameters, also of a collection that is not built.
absl::StatusOr<PublicParameters> ReadParameters(const v1::GetCollectionResponse& collection) {
  absl::StatusOr<PublicParameters> parameters = FromProto(collection.parameters());
  if (parameters.ok()) return parameters;
  return absl::DataLossError(absl::StrCat("public parameters of collection ", collection.name(),
                                          ": ", parameters.status().message()));
}

// A label that classes numbered from 0 do not reach.
constexpr int32_t kLabelOfNothing = std::numeric_limits<int32_t>::max();

// Copies the request, with labels in place of their texts, to `numbered` if it has such texts. A
// scheme that chooses by label on this machine finds nothing for one that the collection does not
// have, and a warning says so: if it were refused, the server, which names the classes, would see
// that no search is sent, and so learn something of the label. The warning comes after the last
// message, which a terminal that takes no text would delay.
absl::Status NumberLabels(const SearchRequest& given, const SearchResponse& response,
                          absl::Status* unknown, std::optional<SearchRequest>* numbered) {
  for (size_t i = 0; i < given.targets.size(); ++i) {
    if (!given.targets[i].label_text.has_value()) continue;
    if (!numbered->has_value()) *numbered = given;
    const auto label = LabelFrom(*given.targets[i].label_text, response.parameters);
    if (!label.ok()) {
      if (response.scheme != Scheme::kEncrypted) {
        if (given.targets.size() == 1) return label.status();
        return WithNote(label.status(),
                        absl::StrCat(", but that of ", given.targets[i].name, " is not"));
      }
      unknown->Update(label.status());
    }
    (*numbered)->targets[i].label = label.value_or(kLabelOfNothing);
  }
  return absl::OkStatus();
}

// A charge would buy nothing.
absl::Status NothingToFindError(const v1::GetCollectionResponse& published,
                                absl::string_view problem) {
  return absl::FailedPreconditionError(absl::StrCat(
      "collection ", published.name(), " has no items", problem, "; nothing was spent"));
}

// A path of the filter that no item has, of a scheme that learns it from the answer alone.
std::optional<std::string> UnknownPath(const SearchResponse& response) {
  for (const SearchResult& result : response.results) {
    if (result.encrypted.has_value() && result.encrypted->unknown_path.has_value()) {
      return result.encrypted->unknown_path;
    }
  }
  return std::nullopt;
}

// The quality of cells is fetched where it may choose the number of items.
bool MayNeedQuality(const SearchRequest& request) {
  return !request.items.has_value() && request.scheme.value_or(Scheme::kCells) == Scheme::kCells;
}

}  // namespace

// A message, and what came of it.
struct Exchange {
  size_t first = 0, count = 0;  // targets
  std::optional<PreparedSearch> prepared = std::nullopt;
  std::optional<SearchAnswer> answer = std::nullopt;
};

// The part of one search that Retry needs.
struct Attempt {
  std::optional<SearchRequest> request = {};  // a copy that `scheme` refers to
  std::unique_ptr<SchemeSearch> scheme = {};
  std::unique_ptr<SearchRecord> record = {};
  LastSearch saved = {};  // as of the last message
  bool is_saved = false;
  SearchResponse response = {};
  std::vector<Exchange> exchanges = {};
};

namespace {

// The state that the messages of one search share.
struct Running {
  SchemeConnection& connection;
  Ledger* ledger;  // null: nothing is charged
  std::string server;
  const std::string& state_folder;
  Attempt& attempt;
  WarnFunction warn;
  Departures& departures;
  MemoryBudget memory;
};

// Sends a message and notes when its answer came.
absl::StatusOr<SearchAnswer> Send(SchemeConnection& connection, Departures& departures,
                                  const PublicParameters& parameters, bool can_resend,
                                  google::protobuf::Message* message, SearchResult* result,
                                  const WarnFunction& warn) {
  if (can_resend) {
    result->sent = message->SerializeAsString();
    result->bytes.up = result->sent.size();
  }
  const Clock::time_point sent = Clock::now();
  absl::StatusOr<SearchAnswer> answer = connection.Send(parameters, message, result, warn);
  departures.NoteArrival();
  if (answer.ok()) result->times.answer_ms = MillisecondsSince(sent);
  return answer;
}

absl::Status SendPrepared(Running& search, Exchange* exchange) {
  Attempt& attempt = search.attempt;
  google::protobuf::Message* message = exchange->prepared->message.get();
  SearchResult& result = attempt.response.results[exchange->first];
  absl::StatusOr<SearchAnswer> answer =
      Send(search.connection, search.departures, attempt.response.parameters,
           EntryOf(attempt.saved.scheme).can_resend, message, &result, search.warn);
  if (attempt.request.has_value()) result.sent = message->SerializeAsString();
  PM_ASSIGN_OR_RETURN(exchange->answer, std::move(answer));
  return search.memory.Reserve(exchange->answer->memory);
}

// Charges, releases and sends one message. The result of its first target gets the figures.
absl::Status ChargeAndSend(Running& search, Exchange* exchange) {
  Attempt& attempt = search.attempt;
  const std::string& uuid = attempt.response.parameters.collection_uuid;
  SearchResult& result = attempt.response.results[exchange->first];
  const ChargeFunction charge = [&](const Guarantee& guarantee) -> absl::Status {
    if (search.ledger == nullptr) {
      return absl::InternalError("the scheme charges for a search that it said costs nothing");
    }
    PM_ASSIGN_OR_RETURN(result.ledger, search.ledger->Charge(uuid, guarantee, search.server));
    result.guarantee = guarantee;
    return absl::OkStatus();
  };
  PM_ASSIGN_OR_RETURN(auto reserved,
                      ReserveLastSearch(search.state_folder, attempt.saved,
                                        attempt.scheme->expectation().message_bytes));
  SecureBits bits;
  const Clock::time_point start = Clock::now();
  PM_ASSIGN_OR_RETURN(exchange->prepared,
                      attempt.scheme->Prepare(exchange->first, exchange->count, charge, bits));
  result.times.prepare_ms = MillisecondsSince(start);
  if (search.ledger != nullptr) {
    if (!result.guarantee.has_value()) {
      return absl::InternalError("the scheme prepared a message without a charge; it is not sent");
    }
  }
  // Saved first, so that Explain shows the message even if no answer comes.
  attempt.saved.message = attempt.record->Add(*exchange->prepared->message);
  PM_RETURN_IF_ERROR(SaveLastSearch(search.state_folder, attempt.saved, std::move(reserved)));
  attempt.is_saved = true;
  return SendPrepared(search, exchange);
}

// Decrypts or ranks the answers. Nothing is sent from here on, and nothing that was decrypted
// decides what a server sees.
// targets: of the request. not_taken: as for FailureOf.
absl::Status ReadAnswers(Running& search, Departures::Search& departing, size_t targets,
                         int64_t not_taken) {
  Attempt& attempt = search.attempt;
  for (const Exchange& one : attempt.exchanges) {
    if (!one.answer.has_value()) continue;
    departing.SetWork(attempt.scheme->WorkOf(*one.answer));
    const std::optional<std::string> record = attempt.record->AddAnswer(*one.answer);
    if (!record.has_value()) continue;
    attempt.saved.message = *record;
    const absl::Status saved = SaveLastSearch(search.state_folder, attempt.saved);
    if (!saved.ok()) {
      search.warn(absl::StrCat(saved.message(), ": `explain` shows no row table of it"));
    }
  }
  std::vector<SearchResult>& all = attempt.response.results;
  for (Exchange& one : attempt.exchanges) {
    const auto results = absl::MakeSpan(all).subspan(one.first, one.count);
    const Clock::time_point start = Clock::now();
    absl::Status status = results.front().status;
    if (status.ok()) {
      status = attempt.scheme->Finish(*std::move(one.prepared), *one.answer, results);
    }
    for (SearchResult& result : results) result.status = status;
    results.front().times.finish_ms = MillisecondsSince(start);
  }
  attempt.record->Complete(&all);
  attempt.response.status = FailureOf(
      all, targets, attempt.is_saved && EntryOf(attempt.response.scheme).can_resend, not_taken);
  const bool none_answered =
      std::all_of(all.begin(), all.end(), [](const auto& result) { return !result.status.ok(); });
  return none_answered ? attempt.response.status : absl::OkStatus();
}

}  // namespace

struct SearchClient::Impl {
  Impl(Transport network, const SearchOptions& options)
      : transport(std::move(network)), state_folder(options.state_folder), limits(options.limits) {
    for (const auto& [name, scheme] : kSchemeNames) {
      connections[scheme] = EntryOf(scheme).connect({transport, state_folder, limits, departures});
    }
  }

  absl::Status CheckProcess() const;
  void Keep(std::unique_ptr<Attempt> attempt);
  std::unique_ptr<Attempt> TakeUnanswered();

  const pid_t process = ::getpid();
  const Transport transport;
  const std::string state_folder;
  const ClientLimits limits;
  Departures departures;
  std::atomic<bool> was_cancelled = false;                          // the last search, by its user
  std::map<Scheme, std::unique_ptr<SchemeConnection>> connections;  // not changed any more
  std::mutex mutex;                                                 // guards the following
  std::unique_ptr<Attempt> unanswered;                              // for Retry
};

absl::StatusOr<std::unique_ptr<SearchClient>> SearchClient::Connect(const SearchOptions& options) {
  PM_ASSIGN_OR_RETURN(Transport transport, Transport::Create(options.connection));
  PM_RETURN_IF_ERROR(CreateStateFolder(options.state_folder));
  return std::unique_ptr<SearchClient>(
      new SearchClient(std::make_unique<Impl>(std::move(transport), options)));
}

SearchClient::SearchClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SearchClient::~SearchClient() {
  if (impl_->CheckProcess().ok()) {
    // Who breaks a search off decides when its connection ends; otherwise ranking would.
    if (!impl_->was_cancelled) WaitForDeparture().IgnoreError();
  } else {
    (void)impl_.release();  // gRPC would wait for threads that a fork does not have
  }
}

absl::Status SearchClient::Impl::CheckProcess() const {
  if (::getpid() == process) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this client belongs to the process that made it, and this one was forked from it, where "
      "gRPC cannot run: fork before the first connection, or start a new process (in Python by "
      "multiprocessing.get_context(\"spawn\"))");
}

// Only a message that got no answer may be sent again.
void SearchClient::Impl::Keep(std::unique_ptr<Attempt> attempt) {
  const Exchange& only = attempt->exchanges.front();
  if (!attempt->is_saved || only.answer.has_value()) return;
  const std::lock_guard<std::mutex> lock(mutex);
  unanswered = std::move(attempt);
}

std::unique_ptr<Attempt> SearchClient::Impl::TakeUnanswered() {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::move(unanswered);
}

absl::Status SearchClient::WaitForDeparture() const {
  PM_RETURN_IF_ERROR(impl_->CheckProcess());
  return impl_->departures.Wait([this] { return impl_->transport.is_cancelled(); });
}

absl::StatusOr<AdminClient> SearchClient::Admin() const {
  PM_RETURN_IF_ERROR(WaitForDeparture());
  return AdminClient(impl_->transport);
}

const std::string& SearchClient::state_folder() const { return impl_->state_folder; }
std::string SearchClient::server_identity() const { return impl_->transport.identity(); }

absl::StatusOr<PublicParameters> SearchClient::Describe(const std::string& collection) const {
  PM_RETURN_IF_ERROR(WaitForDeparture());
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse published,
                      impl_->transport.GetCollection(collection));
  return ReadParameters(published);
}

absl::StatusOr<SearchResponse> SearchClient::Search(const SearchRequest& given,
                                                    const WarnFunction& warn,
                                                    const ProgressFunction& progress,
                                                    const ConfirmFunction& confirm) {
  PM_RETURN_IF_ERROR(CheckTargetValues(given));
  PM_RETURN_IF_ERROR(WaitForDeparture());
  impl_->TakeUnanswered();
  Departures::Search departing(impl_->departures);

  // Fetch what is public, and check the request. Up to the first charge a failure costs nothing.
  const bool asks = confirm != nullptr && given.epsilon > kAskedEpsilon;
  PM_ASSIGN_OR_RETURN(
      const v1::GetCollectionResponse published,
      impl_->transport.GetCollection(given.collection, {.quality = asks || MayNeedQuality(given)}));
  PM_RETURN_IF_ERROR(CheckFingerprint(given, published));
  auto attempt = std::make_unique<Attempt>();
  SearchResponse& response = attempt->response;
  PM_ASSIGN_OR_RETURN(response.parameters, ReadParameters(published));
  PM_ASSIGN_OR_RETURN(response.scheme, ResolveScheme(given, response.parameters));
  PM_RETURN_IF_ERROR(EntryOf(response.scheme).check_offered(published.name(), response.parameters));
  const WarnFunction tell = [&](const std::string& warning) {
    response.warnings.push_back(warning);
    if (warn) warn(warning);
  };
  std::optional<SearchRequest> numbered;  // a copy only if a label is a text
  absl::Status unknown;                   // why the first label that no class has finds nothing
  PM_RETURN_IF_ERROR(NumberLabels(given, response, &unknown, &numbered));
  const SearchRequest& request = numbered.has_value() ? *numbered : given;
  std::unique_ptr<Ledger> ledger;
  LedgerEntry budget;
  std::vector<OperatorEntry> operators;
  const std::string server = impl_->transport.identity();
  if (request.epsilon.has_value()) {
    PM_ASSIGN_OR_RETURN(ledger, OpenLedger(impl_->state_folder));
    PM_ASSIGN_OR_RETURN(budget, ledger->Show(response.parameters.collection_uuid));
    PM_RETURN_IF_ERROR(CheckGranted(budget));
    if (published.items() == 0) return NothingToFindError(published, "");
    PM_ASSIGN_OR_RETURN(operators,
                        ledger->ShowOperators(response.parameters.collection_uuid, server));
  }
  SchemeConnection& connection = *impl_->connections.at(response.scheme);
  const bool is_one = request.targets.size() == 1;
  if (is_one) attempt->request = request;
  PM_ASSIGN_OR_RETURN(attempt->scheme,
                      connection.Open(published, is_one ? *attempt->request : request));
  if (ledger != nullptr && published.embedded_items() == 0) {
    return NothingToFindError(published, " that a search finds: build its embedding again");
  }
  attempt->saved = {.scheme = response.scheme, .collection = published};
  const Expectation& expected = attempt->scheme->expectation();
  PM_RETURN_IF_ERROR(
      ReserveLastSearch(impl_->state_folder, attempt->saved, expected.message_bytes).status());
  if (expected.cost.has_value() != (ledger != nullptr)) {
    return absl::InternalError("a scheme costs what the request allows to spend, and nothing else");
  }
  if (ledger != nullptr) {
    PM_RETURN_IF_ERROR(CheckAffordable(budget, request.targets.size(), *expected.cost));
    for (const OperatorEntry& one : operators) {
      PM_RETURN_IF_ERROR(
          CheckAffordable(one.sum, request.targets.size(), *expected.cost, SumOf(one)));
    }
    if (operators.empty()) PM_RETURN_IF_ERROR(WarnIfUncounted(*ledger, tell));
  }

  // Show what to expect.
  for (const std::string& warning : expected.warnings) tell(warning);
  if (asks) {
    response.warnings.push_back(
        ChargeText(request, response.scheme, response.parameters, published, expected.recall));
    PM_RETURN_IF_ERROR(confirm(response.warnings.back()));
  }

  // Charge, release and send each message. No answer is read before all are sent: a message that
  // depended on an answer, in content or time, would reveal something about a target.
  attempt->record = connection.NewRecord();
  Running search{.connection = connection,
                 .ledger = ledger.get(),
                 .server = server,
                 .state_folder = impl_->state_folder,
                 .attempt = *attempt,
                 .warn = tell,
                 .departures = impl_->departures,
                 .memory = {"the answers of this search", impl_->limits.max_memory}};
  const auto share = static_cast<size_t>(expected.targets_per_message);
  if (ledger != nullptr) ledger->StartBatch(std::ssize(request.targets));
  for (size_t first = 0; first < request.targets.size(); first += share) {
    Exchange& one = attempt->exchanges.emplace_back();
    one.first = first;
    one.count = std::min(share, request.targets.size() - first);
    for (size_t i = 0; i < one.count; ++i) {
      response.results.emplace_back().target = TargetName(request, first + i);
    }
    const absl::Status status = ChargeAndSend(search, &one);
    response.results[first].status = status;
    if (progress) progress(std::ssize(response.results));
    // A failed release ends the batch, and so does what the next message would meet.
    if (EndsBatch(status) || (!status.ok() && !one.prepared.has_value())) break;
  }
  if (!unknown.ok()) {
    response.has_unknown_name = true;
    tell(absl::StrCat("nothing is found: ", unknown.message()));
  }
  const int64_t not_taken = ledger == nullptr ? 0 : ledger->EndBatch();
  const absl::Status read = ReadAnswers(search, departing, request.targets.size(), not_taken);
  impl_->was_cancelled = impl_->transport.is_cancelled();
  if (const std::optional<std::string> path = UnknownPath(response); path.has_value()) {
    response.has_unknown_name = true;
    tell(absl::StrCat("the filter ", NamesUnknownPath(*path)));
  }
  if (read.ok()) return std::move(response);
  if (is_one) impl_->Keep(std::move(attempt));
  return read;
}

absl::StatusOr<SearchResponse> SearchClient::Retry(const WarnFunction& warn) {
  PM_RETURN_IF_ERROR(WaitForDeparture());
  std::unique_ptr<Attempt> attempt = impl_->TakeUnanswered();
  if (attempt == nullptr) return absl::NotFoundError("no search waits for an answer");
  Departures::Search departing(impl_->departures);
  SearchResponse& response = attempt->response;
  const WarnFunction tell = [&](const std::string& warning) {
    response.warnings.push_back(warning);
    if (warn) warn(warning);
  };
  Running search{.connection = *impl_->connections.at(response.scheme),
                 .ledger = nullptr,
                 .server = "",
                 .state_folder = impl_->state_folder,
                 .attempt = *attempt,
                 .warn = tell,
                 .departures = impl_->departures,
                 .memory = {"the answers of this search", impl_->limits.max_memory}};
  response.results.front().status = SendPrepared(search, &attempt->exchanges.front());
  const absl::Status read = ReadAnswers(search, departing, /*targets=*/1, /*not_taken=*/0);
  if (read.ok()) return std::move(response);
  impl_->Keep(std::move(attempt));
  return read;
}

absl::StatusOr<SearchResponse> SearchClient::Resend(const SearchTarget& given,
                                                    std::optional<int64_t> k,
                                                    const std::string& collection) {
  PM_RETURN_IF_ERROR(WaitForDeparture());
  PM_ASSIGN_OR_RETURN(const LastSearch last, LoadLastRelease(impl_->state_folder, collection));
  if (k.has_value()) PM_RETURN_IF_ERROR(CheckIntegerBetween("k", *k, 1, kMaxNeighbors));
  SearchResponse response;
  response.scheme = last.scheme;
  PM_ASSIGN_OR_RETURN(response.parameters, ReadParameters(last.collection));
  if (!response.parameters.HasClasses()) {  // then uploads may have appended names since
    const auto now = impl_->transport.GetCollection(last.collection.name());
    if (now.ok() && now->fingerprint() == last.collection.fingerprint()) {
      PM_ASSIGN_OR_RETURN(const PublicParameters latest, ReadParameters(*now));
      response.parameters.class_names = latest.class_names;
    }
  }
  SearchTarget target = given;
  if (given.label_text.has_value()) {
    const auto label = LabelFrom(*given.label_text, response.parameters);
    if (last.scheme == Scheme::kJoint) PM_RETURN_IF_ERROR(label.status());
    target.label = label.value_or(kLabelOfNothing);  // other schemes refuse any
  }
  SearchResult& result = response.results.emplace_back();
  result.target = target.name;
  SchemeConnection& connection = *impl_->connections.at(last.scheme);
  PM_ASSIGN_OR_RETURN(const SavedMessage saved,
                      connection.Reopen(response.parameters, last, target, k));
  PM_ASSIGN_OR_RETURN(const SearchAnswer answer,
                      Send(connection, impl_->departures, response.parameters, /*can_resend=*/true,
                           saved.message.get(), &result, nullptr));
  PM_RETURN_IF_ERROR(saved.read(answer, &result));
  return response;
}

}  // namespace privatemail::client
