#include "server/access/key_ring.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

constexpr size_t kMaxKeys = 10'000;
// Ended keys that stay listed, to look up ids in logs.
constexpr size_t kEndedKeys = 1000;

int64_t Now() { return absl::ToUnixSeconds(absl::Now()); }

bool IsPermanentOperator(const AccessKey& key) {
  return key.revoked_at == 0 && key.grant.expires_at == 0 && key.IsOperator();
}

// Removes ended keys beyond kEndedKeys, the earliest first.
void Compact(std::vector<AccessKey>* keys, int64_t now) {
  const auto valid_end = std::partition(
      keys->begin(), keys->end(), [&](const AccessKey& key) { return key.EndedAt(now) == 0; });
  if (keys->end() - valid_end <= static_cast<std::ptrdiff_t>(kEndedKeys)) return;
  std::sort(valid_end, keys->end(), [&](const AccessKey& one, const AccessKey& two) {
    return one.EndedAt(now) > two.EndedAt(now);
  });
  keys->erase(valid_end + kEndedKeys, keys->end());
}

// Compared with texts of unknown ids, so that they take the same time.
const AccessKey& DummyKey() {
  static const AccessKey key = [] {
    AccessKey dummy;
    dummy.salt = std::string(16, '\0');
    dummy.digest = std::string(32, '\0');  // of no known secret
    dummy.revoked_at = 1;
    return dummy;
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
  PM_ASSIGN_OR_RETURN(NewAccessKey admin, CreateAccessKey(std::move(everything), Now()));
  // The text first: after a crash between the two there is no key without a holder.
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
  const bool verified = VerifySecret(key != nullptr ? *key : DummyKey(), parts.secret);
  if (key == nullptr || !verified || key->revoked_at != 0) {
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
  PM_ASSIGN_OR_RETURN(NewAccessKey made, CreateAccessKey(std::move(grant), now));
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
    // A key's text, given by mistake, must not appear in a log.
    if (!IsKeyId(id)) {
      return InvalidField(
          "id",
          "must be the 12 hexadecimal digits that a list of the keys shows, not a key's "
          "text");
    }
    return absl::NotFoundError(absl::StrCat("key ", id, " does not exist"));
  }
  const bool again = unwritten_.count(found->id) > 0;
  if (found->revoked_at != 0 && !again) return *found;
  if (IsPermanentOperator(*found) &&
      std::count_if(keys.begin(), keys.end(), IsPermanentOperator) == 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("key ", found->id,
                     " is the last one with the scope admin for all collections that does not "
                     "expire: create another first, or nobody could make keys any more"));
  }
  if (!again) found->revoked_at = Now();
  const AccessKey revoked = *found;
  const absl::Status written = Replace(keys);
  if (written.ok()) return revoked;
  // Revoked at once: a full disk must not leave the key valid.
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
