#include "server/access/key_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
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

}  // namespace privatemail::server
