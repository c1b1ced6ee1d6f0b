#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/cli/flags.h"
#include "client/cli/values.h"
#include "client/files/private_file.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "privatemail/admin_client.h"

namespace privatemail::client::cli {
namespace {

const std::map<std::string, v1::KeyScope> kScopeNames = {{"search", v1::KEY_SCOPE_SEARCH},
                                                         {"write", v1::KEY_SCOPE_WRITE},
                                                         {"admin", v1::KEY_SCOPE_ADMIN}};
constexpr char kStandardOutput[] = "-";

struct CreateKeyOptions {
  std::string name;
  std::vector<std::string> scopes;
  std::vector<std::string> collections;
  double rate = 0;
  std::optional<std::string> expires;  // absent: never
  std::string out;
};

std::vector<std::string> ScopesOf(const v1::Key& key) {
  std::vector<std::string> names;
  for (const auto& [name, scope] : kScopeNames) {
    if (absl::c_linear_search(key.scopes(), scope)) names.push_back(name);
  }
  return names;
}

nlohmann::json KeyToJson(const v1::Key& key) {
  return {{"id", key.id()},
          {"name", key.name()},
          {"scopes", ScopesOf(key)},
          {"collections", key.collections()},
          {"requests_per_second", key.requests_per_second()},
          {"created_at", key.created_at()},
          {"expires_at", OrNull(key.expires_at() != 0, key.expires_at())},
          {"revoked_at", OrNull(key.revoked_at() != 0, key.revoked_at())}};
}

absl::StatusOr<v1::CreateKeyRequest> Encode(const CreateKeyOptions& options) {
  v1::CreateKeyRequest request;
  request.set_name(options.name);
  for (const std::string& name : options.scopes) {
    const auto scope = kScopeNames.find(name);
    if (scope == kScopeNames.end()) {
      return UnknownName("scope", kScopeNames, name);
    }
    request.add_scopes(scope->second);
  }
  request.mutable_collections()->Assign(options.collections.begin(), options.collections.end());
  request.set_requests_per_second(options.rate);
  if (options.expires) {
    PM_ASSIGN_OR_RETURN(const absl::Time end,
                        ParseExpiry("--expires", *options.expires, absl::Now()));
    request.set_expires_at(absl::ToUnixSeconds(end));
  }
  return request;
}

// Warns of a collection that does not exist: allowed, but often a mistyped name. Other errors are
// ignored, since the key exists.
void WarnOfMissing(const std::vector<std::string>& collections, const Transport& transport) {
  for (const std::string& name : collections) {
    if (!absl::IsNotFound(transport.GetCollection(name).status())) continue;
    Warn(absl::StrCat("collection ", name,
                      " does not exist yet: the key is valid for it once it is created"));
  }
}

absl::StatusOr<Result> CreateKey(const Context& context, const CreateKeyOptions& options) {
  PM_ASSIGN_OR_RETURN(const v1::CreateKeyRequest request, Encode(options));
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  const bool to_screen = options.out == kStandardOutput;
  std::unique_ptr<PrivateFile> file;  // opened first: a key that cannot be saved is lost
  if (!to_screen) {
    PM_ASSIGN_OR_RETURN(file,
                        PrivateFile::Create("--out", options.out, PrivateFile::Existing::kKeep));
  }
  PM_ASSIGN_OR_RETURN(const v1::CreateKeyResponse response, admin.CreateKey(request));
  if (file != nullptr) {
    if (const absl::Status saved = file->Commit(response.text() + "\n"); !saved.ok()) {
      return absl::UnavailableError(absl::StrCat(saved.message(), "; revoke key ",
                                                 Printable(response.key().id()),
                                                 ", whose secret is lost"));
    }
  }
  WarnOfMissing(options.collections, admin);
  if (to_screen && !context.json) return Result{.json = response.text()};
  Result result{.json = KeyToJson(response.key())};
  result.json[to_screen ? "key" : "file"] = to_screen ? response.text() : options.out;
  return result;
}

absl::StatusOr<Result> ListKeys(const Context& context, const std::string&) {
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::ListKeysResponse response, admin.ListKeys());
  constexpr int64_t kRowBytes = 2'000;  // of the JSON and text of an empty key
  MemoryBudget memory(kServerRows, context.limits.max_memory);
  nlohmann::json rows = nlohmann::json::array();
  for (const v1::Key& key : response.keys()) {
    PM_RETURN_IF_ERROR(memory.Reserve(kRowBytes + 4 * static_cast<int64_t>(key.SpaceUsedLong())));
    rows.push_back(KeyToJson(key));
  }
  return Result{.json = std::move(rows),
                .columns = {{"",
                             {"id", "name", "scopes", "collections", "requests_per_second",
                              "created_at", "expires_at", "revoked_at"}}}};
}

absl::StatusOr<Result> RevokeKey(const Context& context, const std::string& id) {
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::RevokeKeyResponse response, admin.RevokeKey(id));
  return Result{.json = KeyToJson(response.key())};
}

void AddCreate(CLI::App& parent, Context& context) {
  const auto [create, options] = AddCommand(parent, context, "create", "Create a key", &CreateKey);
  create->add_option("NAME", options->name, "Name of its holder, for listings and logs")
      ->required();
  create
      ->add_option("--scope", options->scopes,
                   "Its scope, once or more: search (anchors, retrieval), write (items, "
                   "builds) or admin (all of it, collections and keys)")
      ->required();
  create->add_option("--collection", options->collections,
                     "Collection of the key, once or more; if absent all, including future ones");
  create
      ->add_option("--rate", options->rate,
                   "Calls per second, each encrypted query counting as one, with bursts of twice "
                   "as many; 0: "
                   "no limit")
      ->capture_default_str();
  create->add_option(
      "--expires", options->expires,
      "Expiry: 30d, 12h or 90m from now, 2027-01-31 (UTC) or 2027-01-31T12:00:00Z; if "
      "absent never");
  create
      ->add_option("--out", options->out,
                   "New file for the key (mode 0600), which must not exist; - for standard output")
      ->required();
}

}  // namespace

void AddKeyCommand(CLI::App& app, Context& context) {
  CLI::App* key = AddCommand(app, "key", "Create, list and revoke access keys");
  key->require_subcommand(1);
  AddCreate(*key, context);
  AddCommand(*key, context, "list",
             "All valid keys and the last 1000 revoked or expired ones; not their secret text",
             &ListKeys);
  const auto [revoke, id] =
      AddCommand(*key, context, "revoke", "Revoke a key; its next call is refused", &RevokeKey);
  revoke->add_option("ID", *id, "12 hex digits, see key list")->required();
}

}  // namespace privatemail::client::cli
