// Access keys: the stored record and the text of its holder.
#ifndef PRIVATEMAIL_SERVER_ACCESS_ACCESS_KEY_H_
#define PRIVATEMAIL_SERVER_ACCESS_ACCESS_KEY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail::server {

// A bit set.
using Scopes = uint32_t;
inline constexpr Scopes kSearchScope = 1;
inline constexpr Scopes kWriteScope = 2;
inline constexpr Scopes kAdminScope = 4;
inline constexpr Scopes kAnyScope = kSearchScope | kWriteScope | kAdminScope;

// "search", "write" or "admin"; 0 for anything else.
Scopes ParseScope(absl::string_view name);
std::vector<std::string> ScopeNames(Scopes scopes);

// The permissions of a key.
struct KeyGrant {
  std::string name;                      // 1 to 64 printable ASCII characters
  Scopes scopes = 0;                     // at least one
  std::vector<std::string> collections;  // names, existing or not; empty: all, also later ones
  double requests_per_second = 0;        // 0: no limit
  int64_t expires_at = 0;                // seconds since 1970; 0: never
};

// INVALID_ARGUMENT naming the field: out of range, more than 1000 collections, or expired by `now`
// (seconds since 1970).
absl::Status Validate(const KeyGrant& grant, int64_t now);

// The stored record of a key. It does not contain the secret: the digest is SHA-256 over salt and
// secret. A secret of 32 random bytes cannot be guessed, so no slow password hash is needed.
struct AccessKey {
  std::string id;  // 12 hex digits, never used again
  KeyGrant grant;
  std::string salt;        // 16 bytes
  std::string digest;      // 32 bytes
  int64_t created_at = 0;  // seconds since 1970
  int64_t revoked_at = 0;  // 0: valid

  // Any of the scopes, for at least one collection.
  bool Has(Scopes any_of) const { return (grant.scopes & any_of) != 0; }
  bool Covers(absl::string_view collection) const;
  bool CoversAll() const { return grant.collections.empty(); }
  // May administer the whole daemon, including its keys.
  bool IsOperator() const { return Has(kAdminScope) && CoversAll(); }
  // The time of revocation or expiry, whichever was first; 0: valid at `now`.
  int64_t EndedAt(int64_t now) const;
};

struct NewAccessKey {
  AccessKey key;
  std::string text;  // pm_ID_SECRET; never stored or logged
};

// INTERNAL: the operating system's generator failed.
absl::StatusOr<NewAccessKey> CreateAccessKey(KeyGrant grant, int64_t created_at);

// The two parts of a key's text; both empty if it is malformed.
struct KeyText {
  absl::string_view id;
  absl::string_view secret;
};
KeyText ParseKeyText(absl::string_view text);

// True for 12 lower-case hexadecimal digits.
bool IsKeyId(absl::string_view text);

// Compares in constant time.
bool VerifySecret(const AccessKey& key, absl::string_view secret);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_ACCESS_KEY_H_
