#include "server/access/key_ring.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

constexpr size_t kMaxKeys = 10'000;
// For whoever looks up in a log what a key was; all of them would fill file and memory.
constexpr size_t kEndedKeys = 1000;

int64_t Now() { return absl::ToUnixSeconds(absl::Now()); }

bool IsLastResort(const AccessKey& key) {
  return key.revoked_at == 0 && key.grant.expires_at == 0 && key.Operates();
}

// Takes out what is beyond kEndedKeys, that which ended first.
void Compact(std::vector<AccessKey>* keys, int64_t now) {
  const auto valid_end = std::partition(
      keys->begin(), keys->end(), [&](const AccessKey& key) { return key.EndedAt(now) == 0; });
  if (keys->end() - valid_end <= static_cast<std::ptrdiff_t>(kEndedKeys)) return;
  std::sort(valid_end, keys->end(), [&](const AccessKey& one, const AccessKey& two) {
    return one.EndedAt(now) > two.EndedAt(now);
  });
  keys->erase(valid_end + kEndedKeys, keys->end());
}

// What a text with an unknown id is compared with, so that it takes as long as any other.
const AccessKey& Nobody() {
  static const AccessKey key = [] {
    AccessKey nobody;
    nobody.salt = std::string(16, '\0');
    nobody.digest = std::string(32, '\0');  // of no secret that anyone knows
    nobody.revoked_at = 1;
    return nobody;
  }();
  return key;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KeyRing>> KeyRing::Open(KeyFile file,
                                                       const std::string& admin_key_path) {
  auto ring = std::unique_ptr<KeyRing>(new KeyRing(std::move(file)));
  if (ring->file_.Exists()) {
    PM_RETURN_IF_ERROR(ring->Reload().status());
    return ring;
  }
  KeyGrant everything;
  everything.name = "admin";
  everything.scopes = kAnyScope;
  PM_ASSIGN_OR_RETURN(NewAccessKey admin, MakeAccessKey(std::move(everything), Now()));
  // The text first: a crash between the two leaves no key that nobody holds.
  PM_RETURN_IF_ERROR(WriteFileAtomically(admin_key_path, absl::StrCat(admin.text, "\n"), 0600));
  const std::lock_guard<std::mutex> change(ring->change_mutex_);
  PM_RETURN_IF_ERROR(ring->Replace({std::move(admin.key)}));
  ring->made_admin_key_ = true;
  return ring;
}

absl::StatusOr<std::shared_ptr<const AccessKey>> KeyRing::Authenticate(absl::string_view text,
                                                                       absl::Time now) const {
  const KeyText parts = ParseKeyText(text);
  std::shared_ptr<const AccessKey> key;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (const auto found = keys_.find(std::string(parts.id)); found != keys_.end()) {
      key = found->second;
    }
  }
  const bool opens = Opens(key != nullptr ? *key : Nobody(), parts.secret);
  if (key == nullptr || !opens || key->revoked_at != 0) {
    return absl::UnauthenticatedError("the key is not accepted: unknown, wrong or revoked");
  }
  if (key->EndedAt(absl::ToUnixSeconds(now)) == 0) return key;
  return absl::UnauthenticatedError(absl::StrCat(
      "the key expired on ",
      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixSeconds(key->grant.expires_at),
                       absl::UTCTimeZone())));
}

absl::Status KeyRing::CheckValid(absl::string_view id, absl::Time now) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = keys_.find(id);
  if (found != keys_.end() && found->second->EndedAt(absl::ToUnixSeconds(now)) == 0) {
    return absl::OkStatus();
  }
  return absl::UnauthenticatedError(
      absl::StrCat("key ", id, " was revoked or expired during this call"));
}

absl::Status KeyRing::Replace(std::vector<AccessKey> keys) {
  Compact(&keys, Now());
  PM_RETURN_IF_ERROR(file_.Save(keys));
  unwritten_.clear();
  Serve(std::move(keys));
  return absl::OkStatus();
}

void KeyRing::Serve(std::vector<AccessKey> keys) {
  Keys by_id;
  for (AccessKey& key : keys) {
    auto shared = std::make_shared<const AccessKey>(std::move(key));
    by_id.emplace(shared->id, shared);
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  keys_.swap(by_id);
}

absl::StatusOr<NewAccessKey> KeyRing::Create(KeyGrant grant) {
  const int64_t now = Now();
  PM_RETURN_IF_ERROR(Validate(grant, now));
  const std::lock_guard<std::mutex> change(change_mutex_);
  std::vector<AccessKey> keys = List();
  const auto valid = std::count_if(keys.begin(), keys.end(),
                                   [&](const AccessKey& key) { return key.EndedAt(now) == 0; });
  if (valid >= static_cast<std::ptrdiff_t>(kMaxKeys)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", valid, " valid keys; the limit is ", kMaxKeys));
  }
  PM_ASSIGN_OR_RETURN(NewAccessKey made, MakeAccessKey(std::move(grant), now));
  keys.push_back(made.key);
  PM_RETURN_IF_ERROR(Replace(std::move(keys)));
  return made;
}

std::vector<AccessKey> KeyRing::List() const {
  std::vector<AccessKey> keys;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (const auto& [id, key] : keys_) keys.push_back(*key);
  }
  std::sort(keys.begin(), keys.end(), [](const AccessKey& one, const AccessKey& two) {
    return std::tie(one.created_at, one.id) < std::tie(two.created_at, two.id);
  });
  return keys;
}

absl::StatusOr<AccessKey> KeyRing::Revoke(absl::string_view id) {
  const std::lock_guard<std::mutex> change(change_mutex_);
  std::vector<AccessKey> keys = List();
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const AccessKey& key) { return key.id == id; });
  if (found == keys.end()) {
    // Not repeated unless it is an id: whoever gives a key's text instead must not find it in a
    // log.
    if (!IsKeyId(id)) {
      return absl::InvalidArgumentError(
          "id must be the 12 hexadecimal digits that `privatemail key list` shows, not a key's "
          "text");
    }
    return absl::NotFoundError(absl::StrCat("key ", id, " does not exist"));
  }
  const bool again = unwritten_.count(found->id) > 0;
  if (found->revoked_at != 0 && !again) return *found;
  if (IsLastResort(*found) && std::count_if(keys.begin(), keys.end(), IsLastResort) == 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("key ", found->id,
                     " is the last one with the scope admin for all collections that does not "
                     "expire: create another first, or nobody could make keys any more"));
  }
  if (!again) found->revoked_at = Now();
  const AccessKey revoked = *found;
  const absl::Status written = Replace(keys);
  if (written.ok()) return revoked;
  // Whoever holds the key is kept out at once: a full disk must not keep it valid.
  Serve(std::move(keys));
  unwritten_.insert(revoked.id);
  return absl::Status(written.code(),
                      absl::StrCat("key ", revoked.id,
                                   " is revoked until the next start or reload, but that is "
                                   "not written: ",
                                   written.message(), "; revoke it once more when it can be"));
}

absl::StatusOr<std::vector<std::string>> KeyRing::Reload() {
  const std::lock_guard<std::mutex> change(change_mutex_);
  PM_ASSIGN_OR_RETURN(std::vector<AccessKey> keys, file_.Load());
  std::vector<std::string> valid_again;
  for (const AccessKey& key : keys) {
    if (key.revoked_at == 0 && unwritten_.count(key.id) > 0) valid_again.push_back(key.id);
  }
  unwritten_.clear();
  Serve(std::move(keys));
  return valid_again;
}

}  // namespace privatemail::server
