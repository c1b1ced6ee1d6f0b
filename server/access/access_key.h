// A key that lets a caller in: what of it the server keeps, and the text its holder keeps.
#ifndef PRIVATEMAIL_SERVER_ACCESS_ACCESS_KEY_H_
#define PRIVATEMAIL_SERVER_ACCESS_ACCESS_KEY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail::server {

// A set of these, as bits.
using Scopes = uint32_t;
inline constexpr Scopes kSearchScope = 1;
inline constexpr Scopes kWriteScope = 2;
inline constexpr Scopes kAdminScope = 4;
inline constexpr Scopes kAnyScope = kSearchScope | kWriteScope | kAdminScope;

// "search", "write" or "admin"; 0 for anything else.
Scopes ScopeNamed(absl::string_view name);
std::vector<std::string> NamesOf(Scopes scopes);

// What an operator decides about a key.
struct KeyGrant {
  std::string name;                      // 1 to 64 printable ASCII characters
  Scopes scopes = 0;                     // at least one
  std::vector<std::string> collections;  // by name, there or not; empty: all, also later ones
  double requests_per_second = 0;        // 0: no limit
  int64_t expires_at = 0;                // seconds since 1970, from when on it is refused; 0: never
};

// INVALID_ARGUMENT naming the field: one is out of its range, over 1000 collections are named, or
// the key would have expired by `now` (seconds since 1970).
absl::Status Validate(const KeyGrant& grant, int64_t now);

// Holds nothing that would open anything: the digest is SHA-256 over salt and secret. The secret is
// 32 random bytes, so there is nothing to guess and a hash that is slow on purpose, which passwords
// need, would only slow every call down.
struct AccessKey {
  std::string id;  // 12 hex digits, never used again
  KeyGrant grant;
  std::string salt;        // 16 bytes
  std::string digest;      // 32 bytes
  int64_t created_at = 0;  // seconds since 1970
  int64_t revoked_at = 0;  // 0: valid

  // One of the scopes, whatever the collection.
  bool Has(Scopes any_of) const { return (grant.scopes & any_of) != 0; }
  bool Covers(absl::string_view collection) const;
  bool CoversAll() const { return grant.collections.empty(); }
  // The daemon as a whole, its keys and its disks included.
  bool Operates() const { return Has(kAdminScope) && CoversAll(); }
  // Since when it has not opened anything, revoked or expired; 0: it is valid at `now`.
  int64_t EndedAt(int64_t now) const;
};

struct NewAccessKey {
  AccessKey key;
  std::string text;  // pm_ID_SECRET, for the holder alone: never stored, never logged
};

// INTERNAL: the operating system's generator failed.
absl::StatusOr<NewAccessKey> MakeAccessKey(KeyGrant grant, int64_t created_at);

// The two parts of a key's text; both empty when it is none.
struct KeyText {
  absl::string_view id;
  absl::string_view secret;
};
KeyText ParseKeyText(absl::string_view text);

// Whether it could be the id of a key: 12 lower-case hexadecimal digits.
bool IsKeyId(absl::string_view text);

// Whether the secret is the key's. Takes the same time whatever the secret holds.
bool Opens(const AccessKey& key, absl::string_view secret);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_ACCESS_KEY_H_
