#include "server/services/keys_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "server/services/rpc_table.h"

namespace privatemail::server {
namespace {

constexpr std::pair<v1::KeyScope, Scopes> kScopes[] = {{v1::KEY_SCOPE_SEARCH, kSearchScope},
                                                       {v1::KEY_SCOPE_WRITE, kWriteScope},
                                                       {v1::KEY_SCOPE_ADMIN, kAdminScope}};

absl::StatusOr<KeyGrant> ParseGrant(const v1::CreateKeyRequest& request) {
  KeyGrant grant;
  grant.name = request.name();
  for (const int wanted : request.scopes()) {
    Scopes bit = 0;
    for (const auto& [scope, known] : kScopes) bit |= scope == wanted ? known : 0;
    if (bit == 0) {
      return InvalidField(
          "scopes",
          absl::StrCat("must be KEY_SCOPE_SEARCH, _WRITE or _ADMIN, but one is ", wanted));
    }
    grant.scopes |= bit;
  }
  grant.collections.assign(request.collections().begin(), request.collections().end());
  grant.requests_per_second = request.requests_per_second();
  grant.expires_at = request.expires_at();
  return grant;
}

void KeyToProto(const AccessKey& key, v1::Key* proto) {
  proto->set_id(key.id);
  proto->set_name(key.grant.name);
  for (const auto& [scope, bit] : kScopes) {
    if (key.Has(bit)) proto->add_scopes(scope);
  }
  for (const std::string& collection : key.grant.collections) proto->add_collections(collection);
  proto->set_requests_per_second(key.grant.requests_per_second);
  proto->set_created_at(key.created_at);
  proto->set_revoked_at(key.revoked_at);
  proto->set_expires_at(key.grant.expires_at);
}

}  // namespace

absl::Status KeysService::CheckKeysAreOn() const {
  if (keys_ != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError("this daemon runs without keys (--insecure)");
}

UnaryReactor* KeysService::CreateKey(RpcContext* context, const Bytes* request, Bytes* response) {
  return dispatcher_->ServeUnary<v1::CreateKeyRequest, v1::CreateKeyResponse>(
      context, "CreateKey", request, response,
      [this](Call& call, const auto& message, auto* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckKeysAreOn());
        PM_ASSIGN_OR_RETURN(KeyGrant grant, ParseGrant(message));
        PM_ASSIGN_OR_RETURN(NewAccessKey created, keys_->Create(std::move(grant)));
        call.AddRows(1);
        call.SetAuditSubject(created.key.id);
        KeyToProto(created.key, answer->mutable_key());
        answer->set_text(std::move(created.text));
        return absl::OkStatus();
      });
}

UnaryReactor* KeysService::ListKeys(RpcContext* context, const Bytes* request, Bytes* response) {
  return dispatcher_->ServeUnary<v1::ListKeysRequest, v1::ListKeysResponse>(
      context, "ListKeys", request, response,
      [this](Call& call, const auto&, auto* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckKeysAreOn());
        for (const AccessKey& key : keys_->List()) KeyToProto(key, answer->add_keys());
        call.AddRows(static_cast<uint64_t>(answer->keys_size()));
        return absl::OkStatus();
      });
}

UnaryReactor* KeysService::RevokeKey(RpcContext* context, const Bytes* request, Bytes* response) {
  return dispatcher_->ServeUnary<v1::RevokeKeyRequest, v1::RevokeKeyResponse>(
      context, "RevokeKey", request, response,
      [this](Call& call, const auto& message, auto* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckKeysAreOn());
        PM_RETURN_IF_ERROR(CheckNotEmpty("id", message.id()));
        // Before Revoke, which may fail after revoking because the key file cannot be written.
        if (IsKeyId(message.id())) call.SetAuditSubject(message.id());
        PM_ASSIGN_OR_RETURN(const AccessKey key, keys_->Revoke(message.id()));
        call.AddRows(1);
        KeyToProto(key, answer->mutable_key());
        return absl::OkStatus();
      });
}

}  // namespace privatemail::server
