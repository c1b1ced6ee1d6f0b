#include "server/access/key_ring.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/digests.h"
#include "common/base/field_error.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

using nlohmann::json;

constexpr absl::string_view kMagic = "privatemail keys ";
constexpr absl::string_view kHeader = "privatemail keys 1\n";
constexpr absl::string_view kChecksum = "sha256 ";
constexpr size_t kTrailerBytes = kChecksum.size() + 2 * 32 + 1;  // hex of 32 bytes, newline
constexpr size_t kMaxBytes = size_t{1} << 30;  // every key with every collection it may name

std::string Trailer(absl::string_view body) {
  return absl::StrCat(kChecksum, absl::BytesToHexString(Sha256::Of(body)), "\n");
}

std::string Line(const AccessKey& key) {
  const json line = {{"id", key.id},
                     {"name", key.grant.name},
                     {"scopes", ScopeNames(key.grant.scopes)},
                     {"collections", key.grant.collections},
                     {"requests_per_second", key.grant.requests_per_second},
                     {"salt", absl::BytesToHexString(key.salt)},
                     {"digest", absl::BytesToHexString(key.digest)},
                     {"created_at", key.created_at},
                     {"revoked_at", key.revoked_at},
                     {"expires_at", key.grant.expires_at}};
  return absl::StrCat(line.dump(), "\n");
}

// May throw json exceptions although the checksum matched.
AccessKey Parse(absl::string_view text) {
  const json line = json::parse(text.begin(), text.end());
  AccessKey key;
  key.id = line.at("id");
  key.grant.name = line.at("name");
  for (const std::string scope : line.at("scopes")) key.grant.scopes |= ParseScope(scope);
  key.grant.collections = line.at("collections").get<std::vector<std::string>>();
  key.grant.requests_per_second = line.at("requests_per_second");
  key.salt = absl::HexStringToBytes(line.at("salt").get<std::string>());
  key.digest = absl::HexStringToBytes(line.at("digest").get<std::string>());
  key.created_at = line.at("created_at");
  key.revoked_at = line.at("revoked_at");
  key.grant.expires_at = line.at("expires_at");
  return key;
}

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

bool KeyFile::Exists() const {
  std::error_code ignored;
  return std::filesystem::exists(path_, ignored);
}

absl::StatusOr<std::vector<AccessKey>> KeyFile::Load() const {
  const auto damaged = [&](absl::string_view how) {
    return absl::DataLossError(
        absl::StrCat("key file ", path_, " is damaged (", how,
                     "): restore it from a backup, or delete it to start anew with an admin key, "
                     "which ends all other keys"));
  };
  PM_ASSIGN_OR_RETURN(const std::string content, ReadFile("key file", path_, kMaxBytes));
  absl::string_view body = content;
  if (body.size() < kTrailerBytes) return damaged("it is too short");
  body.remove_suffix(kTrailerBytes);
  if (Trailer(body) != absl::string_view(content).substr(body.size())) {
    return damaged("its checksum does not match");
  }
  if (!absl::StartsWith(body, kMagic)) return damaged("it holds no keys");
  if (!absl::ConsumePrefix(&body, kHeader)) {
    return absl::FailedPreconditionError(
        absl::StrCat("key file ", path_, " is of a version that this program does not know"));
  }
  std::vector<AccessKey> keys;
  try {
    for (const absl::string_view line : absl::StrSplit(body, '\n', absl::SkipEmpty())) {
      keys.push_back(Parse(line));
    }
  } catch (const json::exception& error) {
    return damaged(error.what());
  }
  return keys;
}

absl::Status KeyFile::Save(const std::vector<AccessKey>& keys) const {
  std::string body(kHeader);
  for (const AccessKey& key : keys) absl::StrAppend(&body, Line(key));
  return WriteFileAtomically(path_, absl::StrCat(body, Trailer(body)), 0600);
}

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
