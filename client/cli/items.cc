#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/values.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/items/payload_filter.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/admin_client.h"

namespace privatemail::client::cli {
namespace {

constexpr size_t kMaxIdsPerCall = 1000;
constexpr int64_t kMaxItemsPerCall = 1000;
constexpr size_t kMaxMissingNamed = 100;

struct ItemsOptions {
  std::string name;
  std::vector<std::string> ids;
  std::string ids_file;
  std::string filter;
  std::string cursor;
  int64_t limit = 10;
  bool features = false;
};

nlohmann::json ItemToJson(const v1::Item& item, const PublicParameters& parameters, bool features) {
  nlohmann::json json = {{"id", item.id()},
                         {"label", OrNull(!item.unlabelled(), item.label())},
                         {"version", item.version()}};
  if (const auto name = parameters.NameOf(item.label()); name.has_value() && !item.unlabelled()) {
    json["class"] = *name;
  }
  // A hostile server may send anything.
  const bool is_json = !item.payload().empty() && CheckPayload(item.payload()).ok();
  json["payload"] = is_json ? nlohmann::json::parse(item.payload()) : nlohmann::json();
  if (features) json["features"] = item.features();
  return json;
}

// A payload of "[{},{},...]" takes 27 bytes for each of its own.
int64_t RowMemory(const v1::Item& item, bool features) {
  constexpr int64_t kRowBytes = 1'000, kBytesPerCharacter = 32, kBytesPerValue = 32;
  return kRowBytes + kBytesPerCharacter * std::ssize(item.payload()) + 8 * std::ssize(item.id()) +
         (features ? kBytesPerValue * int64_t{item.features_size()} : 0);
}

absl::Status AddRows(const google::protobuf::RepeatedPtrField<v1::Item>& items,
                     const PublicParameters& parameters, bool features, MemoryBudget* memory,
                     nlohmann::json* rows) {
  for (const v1::Item& item : items) {
    PM_RETURN_IF_ERROR(memory->Reserve(RowMemory(item, features)));
    rows->push_back(ItemToJson(item, parameters, features));
  }
  return absl::OkStatus();
}

// The parameters, whose class names the printed items have.
absl::StatusOr<PublicParameters> ParametersOf(const AdminClient& admin, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection, admin.GetCollection(name));
  return FromProto(collection.parameters());
}

absl::StatusOr<std::vector<std::string>> IdsOf(const ItemsOptions& options) {
  std::vector<std::string> ids = options.ids;
  if (!options.ids_file.empty()) {
    PM_ASSIGN_OR_RETURN(const std::vector<std::string> more,
                        ReadLines("--ids-file", options.ids_file));
    ids.insert(ids.end(), more.begin(), more.end());
  }
  if (!ids.empty()) return ids;
  return absl::InvalidArgumentError("no ids: name them after the collection, or give --ids-file");
}

// Calls `send` with requests for the ids, at most kMaxIdsPerCall at a time.
template <typename Request>
absl::Status ForEachPart(const std::string& collection, const std::vector<std::string>& ids,
                         absl::FunctionRef<absl::Status(const Request&)> send) {
  for (size_t first = 0; first < ids.size(); first += kMaxIdsPerCall) {
    const auto part = absl::MakeConstSpan(ids).subspan(first, kMaxIdsPerCall);
    Request request;
    request.set_collection(collection);
    request.mutable_ids()->Assign(part.begin(), part.end());
    PM_RETURN_IF_ERROR(send(request));
  }
  return absl::OkStatus();
}

absl::StatusOr<Result> Get(const Context& context, const ItemsOptions& options) {
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> ids, IdsOf(options));
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, ParametersOf(admin, options.name));
  MemoryBudget memory(kServerRows, context.limits.max_memory);
  nlohmann::json rows = nlohmann::json::array();
  std::set<std::string> found;
  const auto get = [&](const v1::GetItemsRequest& request) -> absl::Status {
    PM_ASSIGN_OR_RETURN(const v1::GetItemsResponse response, admin.GetItems(request));
    for (const v1::Item& item : response.items()) found.insert(item.id());
    return AddRows(response.items(), parameters, options.features, &memory, &rows);
  };
  PM_RETURN_IF_ERROR(ForEachPart<v1::GetItemsRequest>(options.name, ids, get));
  std::vector<std::string> missing;
  for (const std::string& id : ids) {
    if (!found.contains(id)) missing.push_back(id);
  }
  return Result{.json = {{"items", rows}, {"missing", missing.size()}, {"missing_ids", missing}},
                .exit_code = missing.empty() ? 0 : kExitFailure};
}

absl::Status CheckFilter(const std::string& filter) {
  return filter.empty() ? absl::OkStatus() : PayloadFilter::Parse(filter).status();
}

absl::StatusOr<Result> ListItems(const Context& context, const ItemsOptions& options) {
  v1::ScrollItemsRequest request;
  request.set_collection(options.name);
  request.set_cursor(options.cursor);
  PM_RETURN_IF_ERROR(CheckFilter(options.filter));
  request.set_filter(options.filter);
  if (options.limit < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--limit must be at least 1, but is ", options.limit));
  }
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, ParametersOf(admin, options.name));
  MemoryBudget memory(kServerRows, context.limits.max_memory);
  nlohmann::json rows = nlohmann::json::array();
  do {
    const int64_t left = options.limit - std::ssize(rows);
    request.set_limit(static_cast<uint32_t>(std::min(left, kMaxItemsPerCall)));
    PM_ASSIGN_OR_RETURN(const v1::ScrollItemsResponse page, admin.ScrollItems(request));
    PM_RETURN_IF_ERROR(AddRows(page.items(), parameters, options.features, &memory, &rows));
    if (!page.next_cursor().empty() && page.next_cursor() == request.cursor()) {
      return absl::DataLossError(
          "the server's pages do not advance: it returned the cursor that it was sent");
    }
    request.set_cursor(page.next_cursor());
  } while (!request.cursor().empty() && std::ssize(rows) < options.limit);
  const std::string& next = request.cursor();
  return Result{
      .json = {{"items", rows}, {"next_cursor", next}},
      .text = rows.empty() ? "no items\n" : "",
      .hint = next.empty() ? "" : absl::StrCat("more items: --limit N, or --cursor ", next),
      .brief = {"items"}};
}

absl::StatusOr<Result> Count(const Context& context, const ItemsOptions& options) {
  v1::CountItemsRequest request;
  request.set_collection(options.name);
  PM_RETURN_IF_ERROR(CheckFilter(options.filter));
  request.set_filter(options.filter);
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::CountItemsResponse response, admin.CountItems(request));
  return Result{.json = {{"items", response.items()}}};
}

absl::StatusOr<Result> DeleteItems(const Context& context, const ItemsOptions& options) {
  PM_ASSIGN_OR_RETURN(std::vector<std::string> ids, IdsOf(options));
  std::set<std::string> given;
  std::erase_if(ids, [&](const std::string& id) { return !given.insert(id).second; });
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  uint64_t deleted = 0;
  std::vector<std::string> missing;  // the first ones
  const auto remove = [&](const v1::DeleteItemsRequest& request) -> absl::Status {
    PM_ASSIGN_OR_RETURN(const v1::DeleteItemsResponse response, admin.DeleteItems(request));
    deleted += response.deleted();
    for (const std::string& id : response.first_missing()) {
      if (missing.size() < kMaxMissingNamed) missing.push_back(id);
    }
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(ForEachPart<v1::DeleteItemsRequest>(options.name, ids, remove));
  if (deleted > ids.size()) return absl::DataLossError("the server says that it deleted more");
  const uint64_t not_found = ids.size() - deleted;
  return Result{.json = {{"deleted", deleted}, {"missing", not_found}, {"missing_ids", missing}},
                .exit_code = not_found > 0 ? kExitPartly : 0,
                .brief = {"deleted", "missing_ids"}};
}

}  // namespace

void AddItemsCommand(CLI::App& app, Context& context) {
  CLI::App* items = AddCommand(app, "items", "Get, list, count and delete single items");
  items->require_subcommand(1);
  const auto add = [&](const char* verb, const char* description, auto run) {
    const auto command = AddCommand(*items, context, verb, description, run);
    command.first->add_option("NAME", command.second->name, "The collection")->required();
    return command;
  };
  const auto get = add("get", "Items by id; exit code 1 if one is missing", &Get);
  const auto list = add("list", "Items in the order of ids", &ListItems);
  const auto count = add("count", "Number of items", &Count);
  const auto remove =
      add("delete",
          "Delete items by id; no answer contains them any more, also before the next build. "
          "Exit code 3: no item has some of the ids, of which the first are printed",
          &DeleteItems);
  for (const auto& [command, options] : {get, remove}) {
    command->add_option("ID", options->ids, "Ids of items");
    command->add_option("--ids-file", options->ids_file,
                        "More ids, one a line; - reads standard input");
  }
  for (const auto& [command, options] : {list, count}) {
    command->add_option("--filter", options->filter,
                        absl::StrCat("Only items whose payload matches. Forms: ", kFilterForm));
  }
  list.first->add_option("--limit", list.second->limit, "Maximum number of items")
      ->capture_default_str();
  list.first->add_option("--cursor", list.second->cursor, "Cursor printed by the previous list");
  for (const auto& [command, options] : {get, list}) {
    command->add_flag("--features", options->features, "Print feature vectors, too");
  }
}

}  // namespace privatemail::client::cli
