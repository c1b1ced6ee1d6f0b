#include "client/queries/two_server_queries.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/queries/last_release.h"
#include "client/queries/memory_limit.h"
#include "client/queries/private_file.h"
#include "client/queries/two_server_calls.h"
#include "client/schemes/published_collection.h"
#include "common/base/printable.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/image/image_header.h"
#include "common/wire/message_memory.h"
#include "privatemail/state_folder.h"

namespace privatemail::client {
namespace {

absl::Status OfServer(absl::string_view half, const Transport& server, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("server ", half, " (", Printable(server.server()),
                                                  "): ", status.message()));
}

// call(server, half): absl::StatusOr<Value>, of both servers at the same time.
template <typename Value, typename Call>
absl::StatusOr<Halves<Value>> CallBoth(const Halves<Transport>& servers, const Call& call) {
  std::future<absl::StatusOr<Value>> a =
      std::async(std::launch::async, [&] { return call(servers.a, 0); });
  absl::StatusOr<Value> of_b = call(servers.b, 1);
  absl::StatusOr<Value> of_a = a.get();
  if (!of_a.ok()) return OfServer("A", servers.a, of_a.status());
  if (!of_b.ok()) return OfServer("B", servers.b, WithSecondFlags(of_b.status()));
  return Halves<Value>{*std::move(of_a), *std::move(of_b)};
}

absl::StatusOr<std::string> Call(const Transport& server, const v1::ScoreRequest& request,
                                 uint64_t bytes) {
  return server.Score(request, bytes);
}

absl::StatusOr<std::string> Call(const Transport& server, const v1::FetchListsRequest& request,
                                 uint64_t bytes) {
  return server.FetchLists(request, bytes);
}

// Tables of one collection begin alike, whatever the server calls it.
std::string TablePrefix(const std::string& collection_uuid) {
  return absl::StrCat("image_table_", ToHex(Sha256::Of(collection_uuid)).substr(0, 16), "_");
}

// Replaces the table of the image before.
absl::Status SaveTable(const std::string& state_folder, const std::string& prefix,
                       const std::string& digest, const std::string& bytes) {
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(state_folder, ignored)) {
    if (absl::StartsWith(file.path().filename().string(), prefix)) {
      std::filesystem::remove(file.path(), ignored);
    }
  }
  return SaveChecked("table of ids and labels",
                     absl::StrCat(state_folder, "/", prefix, ToHex(digest)), bytes);
}

}  // namespace

std::chrono::milliseconds DepartureInterval(uint64_t answer_bytes) {
  return std::chrono::milliseconds(50) * (1 + static_cast<int64_t>(answer_bytes >> 20));
}

absl::StatusOr<TwoServerQueries> TwoServerQueries::Fetch(const Halves<const Transport*>& given,
                                                         QuerySettings settings,
                                                         const std::string& collection,
                                                         bool trust_again) {
  Halves<Transport> servers = {*given.a, *given.b};
  ServerPair pair{.addresses = {servers.a.server(), servers.b.server()},
                  .identities = {},
                  .collection_uuid = ""};
  PM_RETURN_IF_ERROR(CheckDifferentServers(pair));
  PM_RETURN_IF_ERROR(CheckDifferentKeys(servers.a, servers.b));
  PM_RETURN_IF_ERROR(CreateStateFolder(settings.state_folder));
  absl::StatusOr<v1::GetCollectionResponse> described = servers.a.GetCollection(collection);
  if (!described.ok()) return OfServer("A", servers.a, described.status());
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, ReadBuiltCollection(*described));
  PM_ASSIGN_OR_RETURN(Halves<ImageAnswer> images,
                      CallBoth<ImageAnswer>(servers, [&](const Transport& server, int /*half*/) {
                        return server.GetImage(collection);
                      }));
  pair.identities = {images.a.identity, images.b.identity};
  pair.collection_uuid = parameters.collection_uuid;
  PM_RETURN_IF_ERROR(CheckDifferentServers(pair));
  // No half goes to another server of the same name.
  if (pair.identities.a.has_value()) {
    PM_ASSIGN_OR_RETURN(servers.a, servers.a.PinnedTo(pair.identities.a->certificate));
  }
  if (pair.identities.b.has_value()) {
    PM_ASSIGN_OR_RETURN(servers.b, servers.b.PinnedTo(pair.identities.b->certificate));
  }
  if (trust_again) PM_RETURN_IF_ERROR(TrustAgain(settings.state_folder, pair));
  PM_RETURN_IF_ERROR(CheckTrusted(settings.state_folder, pair));
  PM_ASSIGN_OR_RETURN(
      TwoServerImage image,
      TwoServerImage::Create(parameters, {std::move(images.a.image), std::move(images.b.image)}));
  absl::StatusOr<std::vector<v1::GetAnchorsResponse>> anchors =
      FetchAnchors(servers.a, *described, Scheme::kCells, settings.limits);
  if (!anchors.ok()) return OfServer("A", servers.a, anchors.status());
  return TwoServerQueries(std::move(servers), std::move(settings), *std::move(described),
                          *std::move(anchors), std::move(pair), std::move(image));
}

absl::Status TwoServerQueries::Complete(std::optional<TwoServerMode> mode,
                                        std::optional<int64_t> lists,
                                        TwoServerOptions* options) const {
  if (mode == TwoServerMode::kScores && lists.has_value()) {
    return absl::InvalidArgumentError("lists is of no use with mode scores; leave it out");
  }
  const bool has_epsilon = options->epsilon.has_value();
  options->mode = mode.value_or(lists.has_value() || has_epsilon ? TwoServerMode::kLists
                                                                 : image_.DefaultMode());
  options->lists = lists.value_or(has_epsilon ? 1 : TwoServerOptions().lists);
  return absl::OkStatus();
}

// The server chose the digest too, so that memory is estimated before anything is parsed.
absl::StatusOr<v1::ImageTable> TwoServerQueries::ReadTable(const std::string& bytes) const {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  const std::optional<int64_t> memory = MessageMemory(*v1::ImageTable::descriptor(), &in);
  MemoryLimit limit("memory of the table of ids and labels", settings_.limits.max_memory);
  PM_RETURN_IF_ERROR(limit.Reserve(memory.value_or(0)));
  return ReadImageTable(image_.header(), bytes);
}

absl::StatusOr<v1::ImageTable> TwoServerQueries::FetchTable(const WarnFunction& warn) const {
  const std::string prefix = TablePrefix(pair_.collection_uuid);
  const absl::StatusOr<std::string> cached =
      LoadChecked(absl::StrCat(settings_.state_folder, "/", prefix, ToHex(image_.digest())));
  if (cached.ok()) {
    absl::StatusOr<v1::ImageTable> table = ReadTable(*cached);
    if (table.ok()) return table;
  }
  v1::GetImageSectionRequest request;
  request.set_collection(collection_.name());
  request.set_digest(image_.digest());
  request.set_section(v1::IMAGE_SECTION_TABLE);
  const absl::StatusOr<std::string> bytes = servers_.a.GetImageSection(
      request, FindSection(image_.header(), v1::IMAGE_SECTION_TABLE)->bytes());
  if (!bytes.ok()) return OfServer("A", servers_.a, bytes.status());
  absl::StatusOr<v1::ImageTable> table = ReadTable(*bytes);
  if (!table.ok()) return OfServer("A", servers_.a, table.status());
  const absl::Status saved = SaveTable(settings_.state_folder, prefix, image_.digest(), *bytes);
  if (!saved.ok()) warn(absl::StrCat(saved.message(), ": it is fetched again next time"));
  return table;
}

absl::Status TwoServerQueries::CreateClient(TwoServerMode mode, const WarnFunction& warn) {
  std::optional<v1::ImageTable> table;
  if (mode == TwoServerMode::kScores) {
    PM_RETURN_IF_ERROR(image_.CheckScoresAllowed());
    PM_ASSIGN_OR_RETURN(table, FetchTable(warn));
  }
  PM_ASSIGN_OR_RETURN(client_, TwoServerClient::Create(collection_, anchors_, image_,
                                                       std::move(table), settings_.limits));
  last_contact_ = Clock::now();
  return absl::OkStatus();
}

template <typename Request>
absl::StatusOr<Halves<std::string>> TwoServerQueries::SendHalves(const Halves<Request>& requests,
                                                                 TwoServerOutcome* outcome) const {
  outcome->bytes_up += requests.a.ByteSizeLong() + requests.b.ByteSizeLong();
  const uint64_t bytes = image_.AnswerBytes(requests.a);
  PM_ASSIGN_OR_RETURN(Halves<std::string> answers,
                      CallBoth<std::string>(servers_, [&](const Transport& server, int half) {
                        return Call(server, half == 0 ? requests.a : requests.b, bytes);
                      }));
  outcome->bytes_down += answers.a.size() + answers.b.size();
  return answers;
}

absl::Status TwoServerQueries::RecordWrong(const absl::Status& wrong) const {
  const absl::Status recorded = RecordWrongAnswer(settings_.state_folder, pair_, wrong.message());
  if (recorded.ok()) return wrong;
  return absl::DataLossError(absl::StrCat(wrong.message(), "; ", recorded.message()));
}

absl::Status TwoServerQueries::Send(PreparedTwoServerQuery query, BitSource& bits,
                                    Clock::time_point* arrived, TwoServerOutcome* outcome) const {
  const Clock::time_point start = Clock::now();
  const auto send = [&](const auto& requests) { return SendHalves(requests, outcome); };
  PM_ASSIGN_OR_RETURN(const Halves<std::string> answers, std::visit(send, query.requests));
  *arrived = Clock::now();
  PM_ASSIGN_OR_RETURN(const auto payload_requests, client_->Rank(answers, &query.state, bits));
  Halves<std::string> payloads;
  if (payload_requests.has_value()) {
    std::this_thread::sleep_until(
        NextDeparture(*arrived, Clock::now(), IntervalOf(query.state.options())));
    absl::StatusOr<Halves<std::string>> received = send(*payload_requests);
    if (!received.ok()) {
      // The servers have seen that the query failed, whichever answer was wrong first.
      const bool was_wrong = !query.state.answers().ok();
      return was_wrong ? RecordWrong(client_->Finish(std::move(query.state)).status())
                       : received.status();
    }
    payloads = *std::move(received);
    *arrived = Clock::now();
  }
  outcome->round_trip_ms = MillisecondsSince(start);
  absl::StatusOr<TwoServerResult> result = client_->Finish(std::move(query.state), payloads);
  if (!result.ok()) return RecordWrong(result.status());
  outcome->result = *std::move(result);
  return absl::OkStatus();
}

std::chrono::milliseconds TwoServerQueries::IntervalOf(const TwoServerOptions& options) const {
  uint64_t longest = 0;
  for (const TwoServerCall& call : CallsOf(collection_.name(), image_, options)) {
    longest = std::max(longest, call.bytes_down);
  }
  return DepartureInterval(longest);
}

absl::Status TwoServerQueries::Query(const TwoServerOptions& options, Ledger* ledger,
                                     Clock::time_point* arrived, TwoServerOutcome* outcome) const {
  SecureBits bits;
  const Clock::time_point start = Clock::now();
  PM_ASSIGN_OR_RETURN(PreparedTwoServerQuery query,
                      client_->Prepare(outcome->target.target.features, options, ledger, bits));
  outcome->release_ms = MillisecondsSince(start);
  outcome->guarantee = query.state.guarantee();
  outcome->lists = query.state.lists();
  if (ledger != nullptr) {
    outcome->charged = true;
    outcome->epsilon = *options.epsilon;
    PM_ASSIGN_OR_RETURN(outcome->ledger, ledger->Show(pair_.collection_uuid));
  }
  PM_RETURN_IF_ERROR(SaveLastRelease(
      settings_.state_folder,
      {.scheme = Scheme::kTwoServer,
       .collection = collection_,
       .view = ViewsJson(collection_.name(), image_, pair_.addresses, options).dump()}));
  // Neither the queries before nor the work on this one show in its time.
  std::this_thread::sleep_until(NextDeparture(*arrived, Clock::now(), IntervalOf(options)));
  return Send(std::move(query), bits, arrived, outcome);
}

absl::StatusOr<std::vector<TwoServerOutcome>> TwoServerQueries::Run(
    const std::vector<NamedTarget>& targets, const TwoServerOptions& options,
    const WarnFunction& warn) const {
  PM_RETURN_IF_ERROR(client_->CheckOptions(options));
  PM_RETURN_IF_ERROR(CheckLastReleaseCanBeSaved(settings_.state_folder));
  std::unique_ptr<Ledger> ledger;
  if (options.epsilon.has_value()) {
    PM_ASSIGN_OR_RETURN(ledger, OpenLedger(settings_.state_folder));
    PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger->Show(pair_.collection_uuid));
    PM_RETURN_IF_ERROR(CheckAffordable(collection_.name(), entry, targets.size(),
                                       {*options.epsilon, /*delta=*/0}));
  }
  if (!pair_.identities.a.has_value() || !pair_.identities.b.has_value()) {
    warn(
        "without TLS to both servers it cannot be checked that they are two: only their addresses "
        "and the names that they say are compared; whoever reads both connections, as the network "
        "or an operator, learns what both servers together do");
  }
  std::vector<TwoServerOutcome> outcomes;
  Clock::time_point arrived = last_contact_;
  for (const NamedTarget& target : targets) {
    TwoServerOutcome& outcome = outcomes.emplace_back();
    outcome.target = target;
    outcome.status = Query(options, ledger.get(), &arrived, &outcome);
    if (!outcome.status.ok()) break;
  }
  // Afterwards, since the sizes of payloads depend on the targets.
  MemoryLimit answers(kBatchMemory, settings_.limits.max_memory);
  for (TwoServerOutcome& outcome : outcomes) {
    outcome.status.Update(ReservePayloads(outcome.result.matches, &answers));
  }
  return outcomes;
}

}  // namespace privatemail::client
