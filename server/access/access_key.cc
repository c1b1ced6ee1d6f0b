#include "server/access/access_key.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/digests.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::server {
namespace {

constexpr absl::string_view kPrefix = "pm_";
constexpr size_t kIdDigits = 12;
constexpr size_t kSecretBytes = 32;
constexpr size_t kSecretCharacters = 43;  // in base64 without padding
constexpr size_t kSaltBytes = 16;
constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxCollections = 1000;
constexpr double kMaxRate = 1e6;

constexpr std::pair<absl::string_view, Scopes> kScopes[] = {
    {"search", kSearchScope}, {"write", kWriteScope}, {"admin", kAdminScope}};

absl::StatusOr<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    return absl::InternalError("the random generator failed: no key was made");
  }
  return bytes;
}

std::string Digest(absl::string_view salt, absl::string_view secret) {
  return Sha256::Of(absl::StrCat(salt, secret));
}

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isprint(c); });
}

}  // namespace

bool IsKeyId(absl::string_view text) {
  return text.size() == kIdDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

Scopes ParseScope(absl::string_view name) {
  for (const auto& [known, scope] : kScopes) {
    if (name == known) return scope;
  }
  return 0;
}

std::vector<std::string> ScopeNames(Scopes scopes) {
  std::vector<std::string> names;
  for (const auto& [name, scope] : kScopes) {
    if ((scopes & scope) != 0) names.emplace_back(name);
  }
  return names;
}

absl::Status Validate(const KeyGrant& grant, int64_t now) {
  if (!IsName(grant.name)) {
    return InvalidField(
        "name",
        absl::StrCat("must be 1 to ", kMaxNameBytes, " printable ASCII characters, but is '",
                     absl::CHexEscape(grant.name.substr(0, kMaxNameBytes)), "'"));
  }
  if (grant.scopes == 0 || (grant.scopes & ~kAnyScope) != 0) {
    return InvalidField("scopes",
                        "must be one or more of search, write and admin, but none is given");
  }
  if (grant.collections.size() > kMaxCollections) {
    return InvalidField("collections", absl::StrCat("must be at most ", kMaxCollections,
                                                    ", but are ", grant.collections.size()));
  }
  for (const std::string& collection : grant.collections) {
    if (IsName(collection)) continue;
    return InvalidField("collections",
                        absl::StrCat("must be names of 1 to ", kMaxNameBytes,
                                     " printable ASCII characters, but one is '",
                                     absl::CHexEscape(collection.substr(0, kMaxNameBytes)), "'"));
  }
  if (grant.expires_at != 0 && grant.expires_at <= now) {
    return InvalidField(
        "expires_at",
        absl::StrCat("must be 0 (never) or a time to come in seconds since 1970, now ", now,
                     ", but is ", grant.expires_at));
  }
  return CheckBetween("requests_per_second", grant.requests_per_second, 0, kMaxRate);
}

int64_t AccessKey::EndedAt(int64_t now) const {
  const bool expired = grant.expires_at != 0 && grant.expires_at <= now;
  if (!expired) return revoked_at;
  return revoked_at == 0 ? grant.expires_at : std::min(revoked_at, grant.expires_at);
}

bool AccessKey::Covers(absl::string_view collection) const {
  const std::vector<std::string>& some = grant.collections;
  return some.empty() || std::find(some.begin(), some.end(), collection) != some.end();
}

absl::StatusOr<NewAccessKey> CreateAccessKey(KeyGrant grant, int64_t created_at) {
  NewAccessKey made;
  PM_ASSIGN_OR_RETURN(const std::string id, RandomBytes(kIdDigits / 2));
  PM_ASSIGN_OR_RETURN(const std::string secret_bytes, RandomBytes(kSecretBytes));
  PM_ASSIGN_OR_RETURN(made.key.salt, RandomBytes(kSaltBytes));
  const std::string secret = absl::WebSafeBase64Escape(secret_bytes);
  made.key.id = absl::BytesToHexString(id);
  made.key.grant = std::move(grant);
  made.key.digest = Digest(made.key.salt, secret);
  made.key.created_at = created_at;
  made.text = absl::StrCat(kPrefix, made.key.id, "_", secret);
  return made;
}

KeyText ParseKeyText(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kPrefix)) return {};
  if (text.size() != kIdDigits + 1 + kSecretCharacters || text[kIdDigits] != '_') return {};
  return {text.substr(0, kIdDigits), text.substr(kIdDigits + 1)};
}

bool VerifySecret(const AccessKey& key, absl::string_view secret) {
  const std::string digest = Digest(key.salt, secret);
  return key.digest.size() == digest.size() &&
         CRYPTO_memcmp(digest.data(), key.digest.data(), digest.size()) == 0;
}

}  // namespace privatemail::server
