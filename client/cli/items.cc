#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/values.h"
#include "client/schemes/filter_json.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "privatemail/admin_client.h"

namespace privatemail::client::cli {
namespace {

constexpr int kMaxIdsPerCall = 1000;
constexpr int64_t kMaxItemsPerCall = 1000;

struct ItemsOptions {
  std::string name;
  std::vector<std::string> ids;
  std::string ids_file;
  std::string filter;
  std::string cursor;
  int64_t limit = 100;
  bool features = false;
};

nlohmann::json ItemToJson(const v1::Item& item, bool features) {
  nlohmann::json json = {
      {"id", item.id()},
      {"label", item.unlabelled() ? nlohmann::json() : nlohmann::json(item.label())},
      {"version", item.version()}};
  // A hostile server may send anything.
  const bool is_json = !item.payload().empty() && CheckPayload(item.payload()).ok();
  json["payload"] = is_json ? nlohmann::json::parse(item.payload()) : nlohmann::json();
  if (features)
    json["features"] = std::vector<float>(item.features().begin(), item.features().end());
  return json;
}

// A payload of "[{},{},...]" takes 27 bytes for each of its own.
int64_t RowMemory(const v1::Item& item, bool features) {
  constexpr int64_t kRowBytes = 1'000, kBytesPerCharacter = 32, kBytesPerValue = 32;
  return kRowBytes + kBytesPerCharacter * std::ssize(item.payload()) + 8 * std::ssize(item.id()) +
         (features ? kBytesPerValue * int64_t{item.features_size()} : 0);
}

absl::Status AddRows(const google::protobuf::RepeatedPtrField<v1::Item>& items, bool features,
                     RowList* rows) {
  for (const v1::Item& item : items) {
    PM_RETURN_IF_ERROR(rows->Reserve(RowMemory(item, features)));
    rows->Add(ItemToJson(item, features));
  }
  return absl::OkStatus();
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

// Calls `send` with at most kMaxIdsPerCall of the ids at a time.
absl::Status ForEachPart(const std::vector<std::string>& ids,
                         const std::function<absl::Status(const std::vector<std::string>&)>& send) {
  for (size_t first = 0; first < ids.size(); first += kMaxIdsPerCall) {
    const size_t last = std::min(ids.size(), first + kMaxIdsPerCall);
    PM_RETURN_IF_ERROR(send({ids.begin() + static_cast<std::ptrdiff_t>(first),
                             ids.begin() + static_cast<std::ptrdiff_t>(last)}));
  }
  return absl::OkStatus();
}

absl::StatusOr<Result> Get(const Context& context, const ItemsOptions& options) {
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> ids, IdsOf(options));
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  RowList rows(context.connection.max_memory);
  std::set<std::string> found;
  PM_RETURN_IF_ERROR(ForEachPart(ids, [&](const std::vector<std::string>& part) -> absl::Status {
    v1::GetItemsRequest request;
    request.set_collection(options.name);
    request.mutable_ids()->Assign(part.begin(), part.end());
    PM_ASSIGN_OR_RETURN(const v1::GetItemsResponse response, admin.GetItems(request));
    for (const v1::Item& item : response.items()) found.insert(item.id());
    return AddRows(response.items(), options.features, &rows);
  }));
  std::vector<std::string> missing;
  for (const std::string& id : ids) {
    if (!found.contains(id)) missing.push_back(id);
  }
  return Result{
      .json = {{"items", rows.json()}, {"missing", missing.size()}, {"missing_ids", missing}},
      .exit_code = missing.empty() ? 0 : kExitFailure};
}

absl::StatusOr<Result> ListItems(const Context& context, const ItemsOptions& options) {
  v1::ScrollItemsRequest request;
  request.set_collection(options.name);
  request.set_cursor(options.cursor);
  PM_ASSIGN_OR_RETURN(const auto filter, FilterFromJson(options.filter));
  if (filter) *request.mutable_filter() = *filter;
  if (options.limit < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--limit must be at least 1, but is ", options.limit));
  }
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  RowList rows(context.connection.max_memory);
  do {
    const int64_t left = options.limit - std::ssize(rows.json());
    request.set_limit(static_cast<uint32_t>(std::min(left, kMaxItemsPerCall)));
    PM_ASSIGN_OR_RETURN(const v1::ScrollItemsResponse page, admin.ScrollItems(request));
    PM_RETURN_IF_ERROR(AddRows(page.items(), options.features, &rows));
    if (!page.next_cursor().empty() && page.next_cursor() == request.cursor()) {
      return absl::DataLossError(
          "the server's pages do not advance: it returned the cursor that it was sent");
    }
    request.set_cursor(page.next_cursor());
  } while (!request.cursor().empty() && std::ssize(rows.json()) < options.limit);
  return Result{.json = {{"items", rows.json()}, {"next_cursor", request.cursor()}}};
}

absl::StatusOr<Result> Count(const Context& context, const ItemsOptions& options) {
  v1::CountItemsRequest request;
  request.set_collection(options.name);
  PM_ASSIGN_OR_RETURN(const auto filter, FilterFromJson(options.filter));
  if (filter) *request.mutable_filter() = *filter;
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::CountItemsResponse response, admin.CountItems(request));
  return Result{.json = {{"items", response.items()}}};
}

absl::StatusOr<Result> DeleteItems(const Context& context, const ItemsOptions& options) {
  PM_ASSIGN_OR_RETURN(const std::vector<std::string> ids, IdsOf(options));
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  uint64_t deleted = 0;
  PM_RETURN_IF_ERROR(ForEachPart(ids, [&](const std::vector<std::string>& part) -> absl::Status {
    v1::DeleteItemsRequest request;
    request.set_collection(options.name);
    request.mutable_ids()->Assign(part.begin(), part.end());
    PM_ASSIGN_OR_RETURN(const v1::DeleteItemsResponse response, admin.DeleteItems(request));
    deleted += response.deleted();
    return absl::OkStatus();
  }));
  return Result{.json = {{"deleted", deleted}}};
}

using Run = absl::StatusOr<Result> (*)(const Context&, const ItemsOptions&);

CLI::App* AddVerb(CLI::App& parent, Context& context, const std::shared_ptr<ItemsOptions>& options,
                  const std::string& verb, const std::string& description, Run run) {
  CLI::App* command = AddCommand(parent, verb, description);
  command->add_option("NAME", options->name, "The collection")->required();
  SetRun(command, context, options, run);
  return command;
}

}  // namespace

void AddItemsCommand(CLI::App& app, Context& context) {
  CLI::App* items = AddCommand(app, "items", "Get, list, count and delete single items");
  items->require_subcommand(1);
  auto options = std::make_shared<ItemsOptions>();
  CLI::App* get =
      AddVerb(*items, context, options, "get", "Items by id; exit code 1 if one is missing", &Get);
  CLI::App* list =
      AddVerb(*items, context, options, "list", "Items in the order of ids", &ListItems);
  CLI::App* count = AddVerb(*items, context, options, "count", "Number of items", &Count);
  CLI::App* remove =
      AddVerb(*items, context, options, "delete",
              "Delete items by id; no answer contains them any more, also before the next build. "
              "Missing ids are no error: the number of deleted items is printed",
              &DeleteItems);
  for (CLI::App* command : {get, remove}) {
    command->add_option("ID", options->ids, "Ids of items");
    command->add_option("--ids-file", options->ids_file, "More ids, one a line");
  }
  for (CLI::App* command : {list, count}) {
    command->add_option("--filter", options->filter,
                        absl::StrCat("Only items whose payload matches: ", kFilterForm));
  }
  list->add_option("--limit", options->limit, "Maximum number of items")->capture_default_str();
  list->add_option("--cursor", options->cursor, "Cursor printed by the previous list");
  for (CLI::App* command : {get, list}) {
    command->add_flag("--features", options->features, "Print feature vectors, too");
  }
}

}  // namespace privatemail::client::cli
