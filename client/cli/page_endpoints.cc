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
#include "client/cli/budget.h"
#include "client/cli/collection.h"
#include "client/page/assets.h"
#include "client/planning/published_quality.h"
#include "client/planning/query_plan.h"
#include "client/schemes/encrypted/encrypted_client.h"
#include "client/schemes/published_collection.h"
#include "client/search/batch.h"
#include "client/search/charge_text.h"
#include "client/search/result_json.h"
#include "common/base/field_error.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"
#include "common/embedding/setting_names.h"
#include "common/features/feature_extractor.h"
#include "common/features/vector_file.h"
#include "common/items/item_checks.h"
#include "common/lattice/scores.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client::cli {
namespace {

namespace fs = std::filesystem;

// The cost of each search that is charged; it does not depend on the picture.
constexpr double kPageEpsilon = 2;
constexpr double kPageDelta = 1e-5;     // of a joint query
constexpr size_t kKeptTargets = 12;     // of the history
constexpr size_t kKeptBytes = 1 << 26;  // of their files

// The page has words of its own for some errors. No error of a server is about the budget.
std::string CodeOf(const absl::Status& status) {
  const std::optional<FieldProblem> problem = FieldProblemOf(status);
  const std::string field = problem.has_value() ? problem->field : "";
  if (absl::IsResourceExhausted(status) && field == "budget") return "SPENT";
  if (absl::IsResourceExhausted(status) && field == "max_memory") return "LARGE";
  if (absl::IsInvalidArgument(status) && field == "target") return "FORGOTTEN";
  return absl::StatusCodeToString(status.code());
}

PageResponse ErrorResponse(const absl::Status& status) {
  const std::string code = CodeOf(status);
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

// Searches by encrypted need no build.
absl::StatusOr<PublicParameters> ReadParameters(const v1::GetCollectionResponse& collection) {
  if (!collection.parameters().with_encrypted()) return ReadBuiltCollection(collection);
  PM_RETURN_IF_ERROR(EncryptedClient::Create(collection).status());
  return FromProto(collection.parameters());
}

std::string TypeOf(const std::string& path) {
  const std::string end = absl::AsciiStrToLower(fs::path(path).extension().string());
  return end == ".png" || end == ".webp" ? "image/" + end.substr(1) : "image/jpeg";
}

bool IsVectorFile(const std::string& name) {
  const std::string end = absl::AsciiStrToLower(fs::path(name).extension().string());
  return end == ".npy" || end == ".fvecs" || end == ".csv";
}

bool TakesPictures(const std::string& extractor) {
  static const std::string built_in = (*MakeBuiltInExtractor())->identity();
  return extractor == built_in || OnnxOptionsOf(extractor).has_value();
}

// The part of an extractor's identity that names the model's file.
std::string ModelOf(const std::string& extractor) {
  return extractor.substr(0, extractor.find(';'));
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
  std::string extractor_of_first;
  if (!options.collection.empty()) {
    // The page says that a server does not answer yet, and asks again.
    const auto known = client->Describe(options.collection);
    if (absl::IsNotFound(known.status())) return known.status();
    if (known.ok()) extractor_of_first = known->extractor;
  }
  auto page = std::unique_ptr<Page>(new Page(context, std::move(options), std::move(client)));
  if (!page->options_.extractor.model.empty()) {
    PM_ASSIGN_OR_RETURN(const auto extractor, CreateExtractor(page->options_.extractor));
    page->model_ = ModelOf(extractor->identity());
  }
  if (page->LacksModel(extractor_of_first)) {
    Warn(absl::StrCat("the pictures of ", page->options_.collection,
                      " are described by a model that this page is started without, so it cannot "
                      "search them: give --model (",
                      extractor_of_first, ")"));
  }
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

std::string Page::Obstacle(const v1::GetCollectionResponse& collection) const {
  const v1::PublicParameters& parameters = collection.parameters();
  if (collection.items() == 0) return "empty";
  const bool can_be_asked = !parameters.slot_labels().empty() || parameters.publish_quality();
  const bool is_ready = collection.embedding_version() > 0 && can_be_asked;
  if (!parameters.with_encrypted() && !is_ready) return "unready";
  return LacksModel(parameters.extractor()) ? "model" : "";
}

bool Page::LacksModel(const std::string& extractor) const {
  return OnnxOptionsOf(extractor).has_value() && ModelOf(extractor) != model_;
}

Page::Answer Page::Collections() const {
  PM_ASSIGN_OR_RETURN(const AdminClient server, client_->Admin());
  PM_ASSIGN_OR_RETURN(const v1::ListCollectionsResponse response, server.ListCollections());
  nlohmann::json list = nlohmann::json::array();
  for (const v1::GetCollectionResponse& one : response.collections()) {
    nlohmann::json& json = list.emplace_back(ToJson(one));
    json["obstacle"] = Obstacle(one);
    json["takes_pictures"] = TakesPictures(one.parameters().extractor());
  }
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
  // The ways to search that work, with what they send, cost and find.
  nlohmann::json ways = nlohmann::json::object();
  const auto offers = [&, schemes = OfferedSchemes(parameters)](Scheme scheme) {
    return std::find(schemes.begin(), schemes.end(), NameOf(scheme)) != schemes.end();
  };
  if (offers(Scheme::kEncrypted)) {
    PM_ASSIGN_OR_RETURN(const EncryptedClient encrypted, EncryptedClient::Create(opened->proto));
    const int delta = encrypted.delta();
    ways["encrypted"] = {{"bytes", lattice::QueryChunkBytes(parameters.feature_dim, delta)},
                         {"keys", lattice::KeysBytes(delta)}};
  }
  if (opened->quality.ok()) {
    const auto plan =
        MakePlan(parameters, *opened->quality, static_cast<int64_t>(opened->proto.cells_items()),
                 {.epsilon = kPageEpsilon});
    if (plan.ok()) {
      ways["cells"] = {{"epsilon", kPageEpsilon},
                       {"delta", 0},
                       {"finds", plan->prediction.fidelity.value},
                       {"bytes", plan->bytes_down}};
    }
  }
  if (offers(Scheme::kJoint)) {
    ways["joint"] = {{"epsilon", kPageEpsilon},
                     {"delta", kPageDelta},
                     {"bytes", JointBytes(parameters, SearchRequest().k)}};
  }
  nlohmann::json json = ToJson(opened->proto);
  json["ways"] = std::move(ways);
  json["no_cells"] = std::string(opened->quality.status().message());
  const bool takes_pictures = TakesPictures(parameters.extractor);
  json["takes_pictures"] = takes_pictures;
  json["samples"] = nlohmann::json::array();
  const size_t count = pictures_.size();
  for (const size_t twelfths : {1, 5, 9}) {  // of different classes, if there are some
    if (count < 3 || !takes_pictures) break;
    json["samples"].push_back(std::next(pictures_.begin(), twelfths * count / 12)->first);
  }
  const std::lock_guard lock(mutex_);
  opened_ = opened;
  return Result{.json = std::move(json)};
}

Page::Answer Page::Budget(const PageRequest& request) const {
  PM_ASSIGN_OR_RETURN(const auto opened, Shown(request));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context_.state_folder));
  const std::string& uuid = opened->parameters.collection_uuid;
  const std::string server = ServerIdentity(context_.connection);
  PM_ASSIGN_OR_RETURN(Result report, BudgetReport(opened->proto, server, *ledger));
  std::vector<LedgerEntry> entries;
  PM_ASSIGN_OR_RETURN(entries.emplace_back(), ledger->Show(uuid));
  PM_ASSIGN_OR_RETURN(const auto operators, ledger->ShowOperators(uuid, server));
  for (const OperatorEntry& one : operators) entries.push_back(one.sum);
  PM_ASSIGN_OR_RETURN(const auto changes, ledger->History(uuid));
  report.json["history"] = nlohmann::json::array();
  for (const LedgerChange& change : changes) report.json["history"].push_back(ToJson(change));
  report.json["uses_left"] = {{"cells", FewestLeft(entries, {kPageEpsilon, 0})},
                              {"joint", FewestLeft(entries, {kPageEpsilon, kPageDelta})}};
  return report;
}

Page::Answer Page::Pick(const PageRequest& request) {
  const std::lock_guard working(work_);
  const auto start = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(const auto opened, Shown(request));
  const PublicParameters& parameters = opened->parameters;
  const std::string name = OptionOf(request, "name");
  auto picked = std::make_shared<PickedTarget>(
      PickedTarget{.collection = opened,
                   .target = {.name = name},
                   .follows = !OptionOf(request, "follows").empty()});
  if (IsVectorFile(name)) {
    PM_ASSIGN_OR_RETURN(picked->target.features, RowOfFile(request, name, parameters));
  } else {
    ExtractorOptions settings = options_.extractor;
    settings.collection = parameters.extractor;
    if (!OnnxOptionsOf(parameters.extractor).has_value()) settings.model.clear();
    PM_ASSIGN_OR_RETURN(const auto extractor, CreateExtractor(settings));
    PM_RETURN_IF_ERROR(CheckExtractor(parameters, extractor->identity()));
    PM_ASSIGN_OR_RETURN(picked->target.features, extractor->ExtractBytes(name, request.body));
    picked->picture = request.body;
  }
  // A search begins at once, so its time must not show how long the picture took.
  if (picked->follows) {
    TargetOptions one_image;
    one_image.images = {name};
    WaitForDeparture(one_image, start);
  }
  const std::lock_guard lock(mutex_);
  picked->number = ++last_number_;
  std::erase_if(picked_, [](const auto& one) { return one->answer.empty(); });
  picked_.push_back(picked);
  size_t bytes = 0, kept = 0;
  while (kept < std::min(picked_.size(), kKeptTargets) &&
         (kept == 0 || bytes + picked_.rbegin()[kept]->picture.size() <= kKeptBytes)) {
    bytes += picked_.rbegin()[kept++]->picture.size();
  }
  picked_.erase(picked_.begin(), picked_.end() - static_cast<std::ptrdiff_t>(kept));
  return Result{.json = {{"target", picked->number}, {"features", parameters.feature_dim}}};
}

std::shared_ptr<Page::PickedTarget> Page::Picked(absl::string_view number) const {
  const std::lock_guard lock(mutex_);
  for (const auto& one : picked_) {
    if (absl::StrCat(one->number) == number) return one;
  }
  return nullptr;
}

// Waits for the query that the user has stopped waiting for.
Page::Answer Page::Ask(const PageRequest& request) {
  const std::lock_guard working(work_);
  PM_ASSIGN_OR_RETURN(const auto shown, Shown(request));
  const nlohmann::json asked = nlohmann::json::parse(request.body);
  const auto picked = Picked(absl::StrCat(asked.at("target").get<int64_t>()));
  if (picked == nullptr || picked->collection->proto.fingerprint() != shown->proto.fingerprint()) {
    return FieldError("target", "picked again (nothing was spent)", "forgotten");
  }
  const auto chosen = kSchemeNames.find(asked.at("scheme").get<std::string>());
  if (chosen == kSchemeNames.end()) {
    return UnknownName("scheme", kSchemeNames, asked.at("scheme").get<std::string>());
  }
  // The tab says how many answers it has shown: it may have stopped waiting for the last one.
  const bool has_all = asked.at("answers").get<int64_t>() >= picked->answers;
  if (!has_all && picked->scheme == chosen->second) return Result{.json = HistoryEntry(*picked)};
  return Search(picked, chosen->second);
}

Page::Answer Page::Search(const std::shared_ptr<PickedTarget>& picked, Scheme scheme) {
  const Opened& opened = *picked->collection;
  SearchRequest request{.collection = opened.proto.name(),
                        .targets = {picked->target},
                        .scheme = scheme,
                        .fingerprint = opened.proto.fingerprint(),
                        .with_payloads = pictures_.empty()};
  if (scheme != Scheme::kEncrypted) request.epsilon = kPageEpsilon;
  if (scheme == Scheme::kJoint) {
    request.delta = kPageDelta;
  } else {
    ++request.k;  // ranked here: the page leaves out the picture itself
  }
  if (scheme == Scheme::kCells) {
    PM_RETURN_IF_ERROR(opened.quality.status());
    PM_ASSIGN_OR_RETURN(
        const QueryPlan plan,
        MakePlan(opened.parameters, *opened.quality,
                 static_cast<int64_t>(opened.proto.cells_items()), {.epsilon = kPageEpsilon}));
    request.partition = plan.cost.partition;
    request.items = plan.items;
  }
  // Asking again after an error sends the identical bytes, if any were sent.
  const std::pair<int64_t, Scheme> search = {picked->number, scheme};
  absl::StatusOr<SearchResponse> response = absl::NotFoundError("");
  if (std::exchange(unanswered_, search) == search) response = client_->Retry(Warn);
  if (absl::IsNotFound(response.status())) response = client_->Search(request, Warn);
  PM_RETURN_IF_ERROR(response.status());
  unanswered_ = {};
  nlohmann::json json = ToJson(*response, request.collection, 0);
  for (nlohmann::json& match : json["matches"]) {
    match["picture"] = pictures_.contains(match["id"].get<std::string>());
  }
  const std::lock_guard lock(mutex_);
  ++picked->answers;
  picked->scheme = scheme;
  picked->answer = Line(json);
  picked->sent = response->results.front().sent;
  return Result{.json = HistoryEntry(*picked)};
}

// A target with its answer. Private.
nlohmann::json Page::HistoryEntry(const PickedTarget& picked) {
  return {{"target", picked.number},
          {"name", picked.target.name},
          {"picture", !picked.picture.empty()},
          {"follows", picked.follows},
          {"features", picked.target.features.size()},
          {"sent", picked.sent.size()},
          {"answers", picked.answers},
          {"answer", nlohmann::json::parse(picked.answer)}};
}

Page::Answer Page::History(const PageRequest& request) const {
  PM_ASSIGN_OR_RETURN(const auto opened, Shown(request));
  nlohmann::json list = nlohmann::json::array();
  const std::lock_guard lock(mutex_);
  for (const auto& one : picked_) {
    const bool shown = one->collection->proto.fingerprint() == opened->proto.fingerprint();
    if (shown && !one->answer.empty()) list.push_back(HistoryEntry(*one));
  }
  return Result{.json = std::move(list)};
}

Page::Answer Page::Forget() {
  const std::lock_guard lock(mutex_);
  picked_.clear();
  return Result{};
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

PageResponse Page::File(const PageRequest& request) const {
  const auto picked = Picked(OptionOf(request, "target"));
  if (picked == nullptr) return ErrorResponse(absl::NotFoundError("it is forgotten"));
  if (request.path == "target") return {200, TypeOf(picked->target.name), picked->picture};
  const std::lock_guard lock(mutex_);
  return {200, "application/octet-stream", picked->sent};
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
      if (request.path == "api/forget") return Forget();
    } else {
      if (request.path == "api/collections") return Collections();
      if (request.path == "api/collection") return Open(name);
      if (request.path == "api/budget") return Budget(request);
      if (request.path == "api/history") return History(request);
      if (request.path == "api/details") return CollectionInfo(context_, name);
    }
    return absl::NotFoundError("there is no such page");
  };
  try {
    if (request.path == "picture" && !post) return Picture(OptionOf(request, "id"));
    if (request.path == "target" || request.path == "sent") return File(request);
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
