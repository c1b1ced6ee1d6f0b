#include "client/cli/page_endpoints.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/budget.h"
#include "client/cli/collection.h"
#include "client/cli/plan.h"
#include "client/page/assets.h"
#include "client/page/server_view.h"
#include "client/planning/published_quality.h"
#include "client/planning/query_plan.h"
#include "client/schemes/encrypted/encrypted_client.h"
#include "client/schemes/published_collection.h"
#include "client/search/batch.h"
#include "client/search/result_json.h"
#include "common/base/field_error.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/setting_names.h"
#include "common/features/feature_extractor.h"
#include "common/features/vector_file.h"
#include "common/items/item_checks.h"

namespace privatemail::client::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kEpsilons[] = {.1, .15, .25, .35, .5, .7, 1, 1.4, 2, 2.8, 4, 5.6, 8};
constexpr double kPageDelta = 1e-5;  // of a joint query
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

// The fewest that any of the budgets leaves; null if one does not say.
nlohmann::json FewestLeft(const std::vector<LedgerEntry>& entries, const client::Budget& each) {
  nlohmann::json fewest = ReleasesLeft(entries.front(), each);
  for (const LedgerEntry& entry : entries) {
    const nlohmann::json left = ReleasesLeft(entry, each);
    if (left.is_null()) return left;
    fewest = std::min(fewest, left);
  }
  return fewest;
}

std::string Sentence(const Guarantee& guarantee) {
  return absl::StrFormat(
      "Hidden: %s. Every view of the server is at most e^%g = %.3g times as likely "
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
  PM_ASSIGN_OR_RETURN(const VectorFile rows, VectorFile::Parse(name, request.body));
  const int64_t dim = parameters.feature_dim;
  int64_t row = 0;
  if (!absl::SimpleAtoi(OptionOf(request, "row"), &row)) {
    return absl::InvalidArgumentError("row must be a number");
  }
  PM_RETURN_IF_ERROR(CheckIntegerBetween("row", row, 0, rows.rows() - 1));
  PM_RETURN_IF_ERROR(CheckColumns(name, dim, rows.cols()));
  Eigen::RowVectorXf features(dim);
  rows.Copy(row, 1, features.data());
  PM_RETURN_IF_ERROR(CheckHasSimilarity(name, parameters.metric, features.data(), features.size()));
  return features;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Page>> Page::Create(const Context& context, PageOptions options) {
  PM_ASSIGN_OR_RETURN(auto client, SearchClient::Connect(context));
  if (!options.collection.empty()) {
    // The page says that a server does not answer yet, and asks again.
    const absl::Status known = client->Describe(options.collection).status();
    if (absl::IsNotFound(known)) return known;
  }
  auto page = std::unique_ptr<Page>(new Page(context, std::move(options), std::move(client)));
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

void Page::AddPictures(nlohmann::json* matches) const {
  for (nlohmann::json& match : *matches) {
    match["picture"] = pictures_.contains(match["id"].get<std::string>());
  }
}

Page::Answer Page::Collections() const {
  PM_ASSIGN_OR_RETURN(const AdminClient server, client_->Admin());
  PM_ASSIGN_OR_RETURN(const v1::ListCollectionsResponse response, server.ListCollections());
  nlohmann::json list = nlohmann::json::array();
  for (const v1::GetCollectionResponse& one : response.collections()) list.push_back(ToJson(one));
  return Result{.json = {{"server", context_.connection.server},
                         {"first", options_.collection},
                         {"collections", std::move(list)}}};
}

Page::Answer Page::Open(const std::string& name) {
  auto opened = std::make_shared<Opened>();
  PM_ASSIGN_OR_RETURN(const AdminClient server, client_->Admin());
  PM_ASSIGN_OR_RETURN(opened->proto, server.GetCollection(name, {.quality = true}));
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
      {"down", slots * SearchRequest().k * kMatchBytes + parameters.anchor_count * values}};
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
  const std::string server = ServerIdentity(context_.connection);
  PM_ASSIGN_OR_RETURN(Result report, BudgetReport(opened->proto.name(), uuid, server, *ledger));
  std::vector<LedgerEntry> entries;
  PM_ASSIGN_OR_RETURN(entries.emplace_back(), ledger->Show(uuid));
  PM_ASSIGN_OR_RETURN(const auto operators, ledger->ShowOperators(uuid, server));
  for (const OperatorEntry& one : operators) entries.push_back(one.sum);
  PM_ASSIGN_OR_RETURN(const auto changes, ledger->History(uuid));
  report.json["history"] = nlohmann::json::array();
  for (const LedgerChange& change : changes) report.json["history"].push_back(ToJson(change));
  for (const double epsilon : kEpsilons) {
    report.json["queries_left"].push_back({{"cells", FewestLeft(entries, {epsilon, 0})},
                                           {"joint", FewestLeft(entries, {epsilon, kPageDelta})}});
  }
  return report;
}

Page::Answer Page::Pick(const PageRequest& request) {
  const std::lock_guard working(work_);
  PM_ASSIGN_OR_RETURN(const auto opened, Shown(request));
  const PublicParameters& parameters = opened->parameters;
  const std::string name = OptionOf(request, "name");
  QueryTarget target{.target = {.name = name}};
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
  target.features_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const std::lock_guard lock(mutex_);
  picked_ = {picked_.number + 1, opened, std::move(target)};
  return Result{.json = {{"target", picked_.number},
                         {"features", parameters.feature_dim},
                         {"milliseconds", picked_.target.features_ms}}};
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
  return Search(picked, asked);
}

Page::Answer Page::Search(const PickedTarget& picked, const nlohmann::json& asked) const {
  const Opened& opened = *picked.collection;
  const auto chosen = kSchemeNames.find(asked.at("scheme").get<std::string>());
  if (chosen == kSchemeNames.end()) {
    return FieldError("scheme", JoinNames(kSchemeNames), asked.at("scheme").dump());
  }
  SearchRequest request{.collection = opened.proto.name(),
                        .targets = {picked.target.target},
                        .scheme = chosen->second,
                        .fingerprint = opened.proto.fingerprint(),
                        .with_payloads = asked.at("payloads").get<bool>()};
  std::optional<QueryPlan> plan;
  if (request.scheme != Scheme::kEncrypted) request.epsilon = asked.at("epsilon").get<double>();
  if (request.scheme == Scheme::kJoint) {
    request.delta = kPageDelta;
    request.with_alignment = true;
  } else if (request.scheme == Scheme::kCells) {
    PM_RETURN_IF_ERROR(opened.quality.status());
    PM_ASSIGN_OR_RETURN(plan, MakePlan(opened.parameters, *opened.quality,
                                       static_cast<int64_t>(opened.proto.cells_items()),
                                       {.epsilon = *request.epsilon}));
    request.partition = plan->cost.partition;
    request.items = plan->items;
  }
  PM_ASSIGN_OR_RETURN(const SearchResponse response, client_->Search(request, Warn));
  const SearchResult& result = response.results.front();
  nlohmann::json json = ToJson(response, request.collection, 0);
  AddPictures(&json["matches"]);
  json["timings"]["features_ms"] = picked.target.features_ms;
  json["sentence"] =
      result.guarantee.has_value() ? Sentence(*result.guarantee) : Sentence(*result.encryption);
  if (!result.sent.empty()) json["sent"] = SentJson(result.sent);
  if (result.joint.has_value()) {
    json["seen"] =
        OrNull(RowsSeen(*result.joint, {.epsilon = *request.epsilon, .delta = *request.delta}));
  } else if (result.cells.has_value()) {
    json["seen"] =
        OrNull(CellsSeen(*result.cells, picked.target.target.features, plan->cost, plan->cells));
  }
  return Result{.json = std::move(json)};
}

// Null until the features of the gallery are computed.
Page::Answer Page::Nearest(const PageRequest& request) const {
  PM_RETURN_IF_ERROR(Shown(request).status());
  std::shared_future<Gallery> computed;
  QueryTarget target;
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
       (*gallery)->Nearest(target.target.features, SearchRequest().k, {})) {
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
  absl::StatusOr<std::string> bytes = ReadFileBytes(found->second, kMaxImageBytes);
  if (!bytes.ok()) return ErrorResponse(bytes.status());
  return {200, TypeOf(found->second), *std::move(bytes)};
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
