#include "client/cli/page_endpoints.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/budget.h"
#include "client/cli/collection.h"
#include "client/cli/joint_outcome.h"
#include "client/cli/plan.h"
#include "client/cli/query_cells.h"
#include "client/cli/query_encrypted.h"
#include "client/page/assets.h"
#include "client/page/server_view.h"
#include "client/planning/query_plan.h"
#include "client/queries/cell_queries.h"
#include "client/queries/joint_queries.h"
#include "client/queries/replay.h"
#include "client/schemes/published_collection.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"
#include "common/items/item_direction.h"
#include "common/wire/parameters_proto.h"
#include "privatemail/encrypted_client.h"

namespace privatemail::client::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kEpsilons[] = {.1, .15, .25, .35, .5, .7, 1, 1.4, 2, 2.8, 4, 5.6, 8};
constexpr size_t kShownBytes = 256;  // of a request

PageResponse ErrorResponse(const absl::Status& status) {
  const std::string code = absl::StatusCodeToString(status.code());
  const int http = absl::IsInvalidArgument(status) ? 400
                   : absl::IsNotFound(status)      ? 404
                   : absl::IsAlreadyExists(status) ? 409
                   : absl::IsUnavailable(status)   ? 503
                   : absl::IsInternal(status)      ? 500
                                                   : 422;
  return {http, "application/json",
          Line({{"error", {{"code", code}, {"message", std::string(status.message())}}}})};
}

// How many releases of this cost the budget still pays for; null: by Gaussian accounting that
// depends on the noise.
nlohmann::json ReleasesLeft(const LedgerEntry& entry, const client::Budget& each) {
  if (!entry.granted.has_value()) return 0;
  if (entry.accounting == Accounting::kGaussian) return nullptr;
  constexpr double kRounding = 1e-9;  // three times .1 fit into .3
  double count = entry.left().epsilon / each.epsilon;
  if (each.delta > 0) count = std::min(count, entry.left().delta / each.delta);
  return static_cast<int64_t>(std::floor(count * (1 + kRounding)));
}

// Features and plan are for the collection as it was opened.
absl::Status CheckUnchanged(const v1::GetCollectionResponse& opened,
                            const v1::GetCollectionResponse& now) {
  if (opened.fingerprint() == now.fingerprint()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("collection ", now.name(), " has changed: open it again; nothing was spent"));
}

std::string Sentence(const Guarantee& guarantee) {
  return absl::StrFormat(
      "Hidden: %s. Whatever the server sees of this query is at most e^%g = %.3g times as likely "
      "with your target as with another%s (%s: %s). Queries about one target add up.",
      guarantee.neighbours, guarantee.epsilon, std::exp(guarantee.epsilon),
      guarantee.delta > 0 ? absl::StrFormat(", up to a probability of %g", guarantee.delta) : "",
      guarantee.proven ? "proven" : "NOT a proven guarantee", guarantee.source);
}

std::string Sentence(const EncryptedGuarantee& guarantee) {
  return absl::StrFormat(
      "Hidden: everything about your target. The server computes on ciphertexts; the best known "
      "attacks on them take about 2^%d calls of a lattice sieve or more (%s; %s). Nothing was "
      "spent.",
      guarantee.bits, guarantee.assumption, guarantee.source);
}

nlohmann::json SentJson(const std::string& request) {
  return {{"bytes", request.size()},
          {"hex", absl::BytesToHexString(absl::string_view(request).substr(0, kShownBytes))}};
}

// An answer without a picture of what was seen is still an answer.
nlohmann::json OrNull(const absl::StatusOr<nlohmann::json>& seen) {
  return seen.ok() ? *seen : nlohmann::json();
}

// Searches by encrypted need no build.
absl::StatusOr<PublicParameters> ReadParameters(const v1::GetCollectionResponse& collection) {
  if (!collection.parameters().with_encrypted()) return ReadBuiltCollection(collection);
  PM_ASSIGN_OR_RETURN(const EncryptedClient client, EncryptedClient::Create(collection));
  return client.parameters();
}

std::string TypeOf(const std::string& path) {
  const std::string end = absl::AsciiStrToLower(fs::path(path).extension().string());
  return end == ".png" || end == ".webp" ? "image/" + end.substr(1) : "image/jpeg";
}

bool IsVectorFile(const std::string& name) {
  const std::string end = absl::AsciiStrToLower(fs::path(name).extension().string());
  return end == ".npy" || end == ".fvecs" || end == ".csv";
}

std::string OptionOf(const PageRequest& request, const std::string& name) {
  const auto found = request.options.find(name);
  return found == request.options.end() ? "" : found->second;
}

absl::StatusOr<Eigen::RowVectorXf> RowOfFile(const PageRequest& request, const std::string& name,
                                             const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix rows, ParseVectors(name, request.body));
  const int64_t dim = parameters.feature_dim;
  int64_t row = 0;
  if (!absl::SimpleAtoi(OptionOf(request, "row"), &row)) {
    return absl::InvalidArgumentError("row must be a number");
  }
  PM_RETURN_IF_ERROR(CheckIntegerBetween("row", row, 0, rows.rows() - 1));
  PM_RETURN_IF_ERROR(CheckColumns(name, dim, rows.cols()));
  const Eigen::RowVectorXf features = rows.row(row);
  PM_RETURN_IF_ERROR(CheckHasSimilarity(name, parameters.metric, features.data(), features.size()));
  return features;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Page>> Page::Create(const Context& context, PageOptions options) {
  PM_ASSIGN_OR_RETURN(Transport transport, Transport::Create(context.connection));
  if (!options.collection.empty()) {
    // A server that does not answer yet is told on the page, which asks again.
    const absl::Status known = transport.GetCollection(options.collection).status();
    if (absl::IsNotFound(known)) return known;
  }
  PM_ASSIGN_OR_RETURN(auto searches, SearchClient::Create(transport, SettingsOf(context)));
  auto page = std::unique_ptr<Page>(
      new Page(context, std::move(options), std::move(transport), std::move(searches)));
  const std::string& folder = page->options_.pictures;
  if (folder.empty()) return page;
  PM_ASSIGN_OR_RETURN(const ImageFolder listed, ListImageFolder(folder));
  std::error_code error;
  const std::string below = fs::canonical(folder, error).string() + "/";
  for (const FolderImage& image : listed.images) {
    const std::string path = fs::canonical(image.path, error).string();
    // A link may lead out of the folder.
    if (!error && path.starts_with(below)) page->pictures_[image.id] = path;
  }
  return page;
}

absl::StatusOr<std::shared_ptr<const Page::Opened>> Page::Shown(const PageRequest& request) const {
  const std::lock_guard lock(mutex_);
  if (opened_ == nullptr) return absl::FailedPreconditionError("no collection is open");
  if (OptionOf(request, "digest") == absl::BytesToHexString(opened_->proto.fingerprint())) {
    return opened_;
  }
  return absl::FailedPreconditionError(absl::StrCat("another tab has opened collection ",
                                                    opened_->proto.name(),
                                                    ": reload this one; nothing was spent"));
}

void Page::AddNames(const PublicParameters& parameters, nlohmann::json* matches) const {
  for (nlohmann::json& match : *matches) {
    match["class"] = "";
    if (match["label"].is_number()) {
      const auto slot = parameters.SlotOf(match["label"].get<int32_t>());
      if (slot.ok()) match["class"] = parameters.ClassName(*slot);
    }
    match["picture"] = pictures_.contains(match["id"].get<std::string>());
  }
}

Page::Answer Page::Collections() const {
  PM_RETURN_IF_ERROR(searches_->WaitForDeparture());
  PM_ASSIGN_OR_RETURN(const v1::ListCollectionsResponse response, transport_.ListCollections());
  nlohmann::json list = nlohmann::json::array();
  for (const v1::GetCollectionResponse& one : response.collections()) list.push_back(ToJson(one));
  return Result{.json = {{"server", context_.connection.server},
                         {"first", options_.collection},
                         {"collections", std::move(list)}}};
}

Page::Answer Page::Open(const std::string& name) {
  auto opened = std::make_shared<Opened>();
  PM_RETURN_IF_ERROR(searches_->WaitForDeparture());
  PM_ASSIGN_OR_RETURN(opened->proto, transport_.GetCollection(name, {.quality = true}));
  PM_ASSIGN_OR_RETURN(opened->parameters, ReadParameters(opened->proto));
  opened->quality = QualityOf(opened->proto);
  const PublicParameters& parameters = opened->parameters;
  nlohmann::json plans = nlohmann::json::array();
  for (const double epsilon : kEpsilons) {
    nlohmann::json row = {{"epsilon", epsilon}, {"cells", nullptr}};
    if (opened->quality.ok()) {
      const auto plan =
          MakePlan(parameters, *opened->quality, static_cast<int64_t>(opened->proto.cells_items()),
                   {.epsilon = epsilon});
      if (plan.ok()) row["cells"] = PlanJson(*plan);
    }
    plans.push_back(std::move(row));
  }
  const auto slots = static_cast<int64_t>(parameters.slot_labels.size());
  const int64_t values = sizeof(float) * parameters.settings.embedding_dim;
  constexpr int64_t kMatchBytes = 44;  // an id of 24 bytes, label, distance and their tags
  nlohmann::json json = ToJson(opened->proto);
  json["plans"] = std::move(plans);
  json["no_cells"] = std::string(opened->quality.status().message());
  json["joint_bytes"] = {
      {"up", (slots + parameters.anchor_count) * values},
      {"down", slots * kDefaultMatches * kMatchBytes + parameters.anchor_count * values}};
  json["joint_delta"] = kPageDelta;
  json["pictures"] = !pictures_.empty();
  std::shared_future<Gallery> former;  // its destructor waits, so after the lock is gone
  const std::lock_guard lock(mutex_);
  opened_ = opened;
  // Another model than before gives other features.
  if (!pictures_.empty() && (!gallery_.valid() || gallery_extractor_ != parameters.extractor)) {
    ExtractorOptions extractor = options_.extractor;
    extractor.collection = gallery_extractor_ = parameters.extractor;
    *std::exchange(gallery_cancelled_, std::make_shared<std::atomic<bool>>()) = true;
    extractor.cancelled = [cancelled = gallery_cancelled_] { return cancelled->load(); };
    former = std::move(gallery_);
    gallery_ = std::async(std::launch::async, [folder = options_.pictures, extractor]() -> Gallery {
                 PM_ASSIGN_OR_RETURN(LocalGallery gallery, LocalGallery::Create(folder, extractor));
                 return std::make_shared<const LocalGallery>(std::move(gallery));
               }).share();
  }
  return Result{.json = std::move(json)};
}

Page::Answer Page::Budget(const PageRequest& request) const {
  PM_ASSIGN_OR_RETURN(const auto opened, Shown(request));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context_.state_folder));
  const std::string& uuid = opened->parameters.collection_uuid;
  PM_ASSIGN_OR_RETURN(Result report, BudgetReport(opened->proto.name(), uuid, *ledger));
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger->Show(uuid));
  PM_ASSIGN_OR_RETURN(const auto changes, ledger->History(uuid));
  report.json["history"] = nlohmann::json::array();
  for (const LedgerChange& change : changes) report.json["history"].push_back(ToJson(change));
  for (const double epsilon : kEpsilons) {
    report.json["queries_left"].push_back({{"cells", ReleasesLeft(entry, {epsilon, 0})},
                                           {"joint", ReleasesLeft(entry, {epsilon, kPageDelta})}});
  }
  return report;
}

Page::Answer Page::Pick(const PageRequest& request) {
  const std::lock_guard working(work_);
  PM_ASSIGN_OR_RETURN(const auto opened, Shown(request));
  const PublicParameters& parameters = opened->parameters;
  const std::string name = OptionOf(request, "name");
  NamedTarget target{.name = name, .guessed = true};
  const auto start = std::chrono::steady_clock::now();
  if (IsVectorFile(name)) {
    PM_ASSIGN_OR_RETURN(target.target.features, RowOfFile(request, name, parameters));
  } else {
    ExtractorOptions settings = options_.extractor;
    settings.collection = parameters.extractor;
    PM_ASSIGN_OR_RETURN(const auto extractor, CreateExtractor(settings));
    PM_RETURN_IF_ERROR(CheckExtractor(parameters, extractor->identity()));
    PM_ASSIGN_OR_RETURN(target.target.features, extractor->ExtractBytes(name, request.body));
  }
  target.features_ms = MillisecondsSince(start);
  const std::lock_guard lock(mutex_);
  picked_ = {picked_.number + 1, opened, std::move(target)};
  return Result{.json = {{"target", picked_.number},
                         {"features", parameters.feature_dim},
                         {"milliseconds", picked_.target.features_ms}}};
}

// Nothing is charged, and nothing is drawn: ciphertexts look the same for every target.
Page::Answer Page::AskEncrypted(const PickedTarget& picked, bool with_payloads) const {
  const Opened& opened = *picked.collection;
  std::vector<std::string> warnings;
  PM_ASSIGN_OR_RETURN(
      const SearchAnswer answer,
      searches_->Search(opened.proto.name(), {{.features = picked.target.target.features}},
                        {.k = kDefaultMatches, .with_payloads = with_payloads},
                        RecordAndWarn(&warnings)));
  nlohmann::json json = AnswerJson(answer, opened.proto.name(), {picked.target}, 0, warnings);
  AddNames(answer.parameters, &json["matches"]);
  json["sentence"] = Sentence(answer.guarantee);
  return Result{.json = std::move(json)};
}

Page::Answer Page::AskCells(const PickedTarget& picked, double epsilon, bool with_payloads) const {
  const Opened& opened = *picked.collection;
  PM_RETURN_IF_ERROR(opened.quality.status());
  PM_ASSIGN_OR_RETURN(
      const QueryPlan plan,
      MakePlan(opened.parameters, *opened.quality, static_cast<int64_t>(opened.proto.cells_items()),
               {.epsilon = epsilon}));
  PM_ASSIGN_OR_RETURN(CellQueries queries,
                      CellQueries::Fetch(transport_, SettingsOf(context_), opened.proto.name(),
                                         /*with_quality=*/false));
  PM_RETURN_IF_ERROR(CheckUnchanged(opened.proto, queries.collection()));
  PM_RETURN_IF_ERROR(queries.CreateClient());
  PM_RETURN_IF_ERROR(queries.client().targets().CheckAnchorsMatch());
  std::vector<std::string> warnings;
  PM_ASSIGN_OR_RETURN(const std::vector<CellsOutcome> outcomes,
                      queries.Run({picked.target},
                                  {.cost = plan.cost,
                                   .items = plan.items,
                                   .k = kDefaultMatches,
                                   .with_payloads = with_payloads},
                                  RecordAndWarn(&warnings)));
  PM_RETURN_IF_ERROR(
      FailureOf(AttemptsOf(outcomes), 1, "privatemail resend --image FILE (or --vectors)"));
  const CellsOutcome& outcome = outcomes.front();
  nlohmann::json json = OutcomeJson(outcome, queries.client(), warnings);
  AddNames(opened.parameters, &json["matches"]);
  json["sentence"] = Sentence(outcome.prepared.state.guarantee);
  json["sent"] = SentJson(outcome.prepared.request.SerializeAsString());
  json["seen"] = OrNull(CellsSeen(outcome, queries.client().scheme(), plan.cost, plan.cells));
  return Result{.json = std::move(json)};
}

Page::Answer Page::AskJoint(const PickedTarget& picked, const PrivacyCost& cost,
                            bool with_payloads) const {
  const Opened& opened = *picked.collection;
  PM_ASSIGN_OR_RETURN(const JointQueries queries,
                      JointQueries::Create(transport_, SettingsOf(context_), opened.proto.name()));
  PM_RETURN_IF_ERROR(CheckUnchanged(opened.proto, queries.collection()));
  std::vector<NamedTarget> targets = {picked.target};
  PM_RETURN_IF_ERROR(queries.AllotClasses(kDefaultMatches, /*classes=*/0, &targets));
  PM_RETURN_IF_ERROR(queries.CheckAlignment());
  std::vector<std::string> warnings;
  PM_ASSIGN_OR_RETURN(const std::vector<JointOutcome> outcomes,
                      queries.Run(targets,
                                  {.cost = cost,
                                   .k = kDefaultMatches,
                                   .with_payloads = with_payloads,
                                   .with_alignment = true},
                                  /*classes=*/0, RecordAndWarn(&warnings)));
  PM_RETURN_IF_ERROR(FailureOf(AttemptsOf(outcomes), 1, "privatemail resend --label CLASS"));
  const JointOutcome& outcome = outcomes.front();
  const JointClient& client = queries.client();
  nlohmann::json json =
      OutcomeJson(outcome, client.parameters(), warnings, ToReport(outcome, client, std::nullopt));
  AddNames(client.parameters(), &json["matches"]);
  json["sentence"] = Sentence(outcome.prepared.state.guarantee);
  json["sent"] = SentJson(outcome.prepared.request.SerializeAsString());
  json["seen"] = OrNull(RowsSeen(outcome, client, cost));
  return Result{.json = std::move(json)};
}

Page::Answer Page::Ask(const PageRequest& request) {
  const std::unique_lock working(work_, std::try_to_lock);
  if (!working.owns_lock()) {
    return absl::AlreadyExistsError("a query or features are being computed: wait for them");
  }
  PM_ASSIGN_OR_RETURN(const auto shown, Shown(request));
  PickedTarget picked;
  {
    const std::lock_guard lock(mutex_);
    picked = picked_;
  }
  const nlohmann::json asked = nlohmann::json::parse(request.body);
  if (picked.number == 0 || asked.at("target").get<int64_t>() != picked.number ||
      picked.collection->proto.fingerprint() != shown->proto.fingerprint()) {
    return absl::InvalidArgumentError("pick the picture or row again; nothing was spent");
  }
  const auto epsilon = asked.at("epsilon").get<double>();
  const bool with_payloads = asked.at("payloads").get<bool>();
  const auto scheme = asked.at("scheme").get<std::string>();
  if (scheme == "encrypted") return AskEncrypted(picked, with_payloads);
  if (scheme == "cells") return AskCells(picked, epsilon, with_payloads);
  if (scheme != "joint")
    return absl::InvalidArgumentError("scheme must be encrypted, cells or joint");
  return AskJoint(picked, {.epsilon = epsilon, .delta = kPageDelta}, with_payloads);
}

// Null until the features of the gallery are computed.
Page::Answer Page::Nearest(const PageRequest& request) const {
  PM_RETURN_IF_ERROR(Shown(request).status());
  std::shared_future<Gallery> computed;
  NamedTarget target;
  {
    const std::lock_guard lock(mutex_);
    computed = gallery_;
    target = picked_.target;
    if (OptionOf(request, "target") != absl::StrCat(picked_.number)) {
      return absl::FailedPreconditionError("another target has been picked since");
    }
  }
  using std::chrono_literals::operator""ms;
  if (!computed.valid() || target.target.features.size() == 0 ||
      computed.wait_for(0ms) != std::future_status::ready) {
    return Result{};
  }
  const Gallery& gallery = computed.get();
  PM_RETURN_IF_ERROR(gallery.status());
  nlohmann::json list = nlohmann::json::array();
  for (const ReportImage& image :
       (*gallery)->Nearest(target.target.features, kDefaultMatches, {})) {
    list.push_back({{"id", image.caption}, {"picture", pictures_.contains(image.caption)}});
  }
  return Result{.json = std::move(list)};
}

// Only listed ids have a path, so no id leads anywhere else; nor does a link that was made since.
PageResponse Page::Picture(const std::string& id) const {
  const auto found = pictures_.find(id);
  std::error_code error;
  if (found == pictures_.end() || fs::canonical(found->second, error) != found->second) {
    return ErrorResponse(absl::NotFoundError("there is no such picture"));
  }
  absl::StatusOr<std::string> bytes = ReadFileBytes(found->second);
  if (!bytes.ok()) return ErrorResponse(bytes.status());
  return {200, TypeOf(found->second), *std::move(bytes)};
}

void Page::Stop() {
  const std::lock_guard lock(mutex_);
  *gallery_cancelled_ = true;
}

PageResponse Page::Respond(const PageRequest& request) {
  const bool post = request.method == "POST";
  if (const auto asset = kPageAssets.find(request.path); asset != kPageAssets.end() && !post) {
    return {200, asset->second.type, asset->second.text};
  }
  const auto answer = [&]() -> Answer {
    const std::string name = OptionOf(request, "name");
    if (post) {
      if (request.path == "api/target") return Pick(request);
      if (request.path == "api/ask") return Ask(request);
    } else {
      if (request.path == "api/collections") return Collections();
      if (request.path == "api/collection") return Open(name);
      if (request.path == "api/budget") return Budget(request);
      if (request.path == "api/nearest") return Nearest(request);
      if (request.path == "api/details") return CollectionInfo(context_, name);
    }
    return absl::NotFoundError("there is no such page");
  };
  try {
    if (request.path == "picture" && !post) return Picture(OptionOf(request, "id"));
    const Answer found = answer();
    if (!found.ok()) return ErrorResponse(found.status());
    return {200, "application/json", Line(found->json)};
  } catch (const nlohmann::json::exception&) {
    return ErrorResponse(absl::InvalidArgumentError("the request is malformed"));
  } catch (const std::exception& error) {
    return ErrorResponse(absl::InternalError(absl::StrCat("unexpected: ", error.what())));
  }
}

}  // namespace privatemail::client::cli
