#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "privatemail/v1/keys.pb.h"
#include "server/services/services.h"

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

absl::Status CheckKeysAreOn(const KeyRing* keys) {
  if (keys != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError("this daemon runs without keys (--insecure)");
}

}  // namespace

void ServeKeys(KeyRing* keys, Dispatcher* dispatcher) {
  dispatcher->ServeUnary<v1::CreateKeyRequest, v1::CreateKeyResponse>(
      "CreateKey", [keys](Call& call, const auto& request, auto* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckKeysAreOn(keys));
        PM_ASSIGN_OR_RETURN(KeyGrant grant, ParseGrant(request));
        PM_ASSIGN_OR_RETURN(NewAccessKey created, keys->Create(std::move(grant)));
        call.AddRows(1);
        call.SetAuditSubject(created.key.id);
        KeyToProto(created.key, answer->mutable_key());
        answer->set_text(std::move(created.text));
        return absl::OkStatus();
      });
  dispatcher->ServeUnary<v1::ListKeysRequest, v1::ListKeysResponse>(
      "ListKeys", [keys](Call& call, const auto& /*request*/, auto* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckKeysAreOn(keys));
        for (const AccessKey& key : keys->List()) KeyToProto(key, answer->add_keys());
        call.AddRows(static_cast<uint64_t>(answer->keys_size()));
        return absl::OkStatus();
      });
  dispatcher->ServeUnary<v1::RevokeKeyRequest, v1::RevokeKeyResponse>(
      "RevokeKey", [keys](Call& call, const auto& request, auto* answer) -> absl::Status {
        PM_RETURN_IF_ERROR(CheckKeysAreOn(keys));
        PM_RETURN_IF_ERROR(CheckNotEmpty("id", request.id()));
        // Before Revoke, which may fail after revoking because the key file cannot be written.
        if (IsKeyId(request.id())) call.SetAuditSubject(request.id());
        PM_ASSIGN_OR_RETURN(const AccessKey key, keys->Revoke(request.id()));
        call.AddRows(1);
        KeyToProto(key, answer->mutable_key());
        return absl::OkStatus();
      });
}

}  // namespace privatemail::server
