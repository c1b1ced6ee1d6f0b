#include "client/search/encrypted/row_table_cache.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/files/folder_lock.h"
#include "client/files/private_file.h"
#include "client/schemes/encrypted/row_table.h"
#include "common/base/digests.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

namespace fs = std::filesystem;

constexpr char kWhat[] = "cached blocks of the row table";
constexpr size_t kFolderNameBytes = 16;
// A cache that is not written costs less than a search that waits.
constexpr std::chrono::seconds kMaxLockWait{3};

std::string PrefixOf(RowTableCache::Kind kind) {
  return kind == RowTableCache::Kind::kTable ? "table-" : "payloads-";
}

std::string NameOf(RowTableCache::Kind kind, const std::string& digest) {
  return absl::StrCat(PrefixOf(kind), absl::BytesToHexString(digest));
}

std::vector<fs::path> FilesOf(const std::string& folder, const std::string& prefix) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    if (absl::StartsWith(file->path().filename().string(), prefix)) files.push_back(file->path());
  }
  return files;
}

absl::Status CreateFolder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(kWhat, ": ", folder, " cannot be created: ", std::strerror(errno)));
}

std::set<std::string> DigestsIn(const std::string& digests) {
  std::set<std::string> all;
  for (size_t at = 0; at < digests.size(); at += kBlockDigestBytes) {
    all.insert(digests.substr(at, kBlockDigestBytes));
  }
  return all;
}

// The name of a collection's folder in the one of all collections.
std::string FolderName(const std::string& server, const std::string& collection_uuid) {
  // A digest: the server chose the UUID, which must not choose the path.
  const std::string key = Sha256::Of(absl::StrCat(server.size(), " ", server, collection_uuid));
  return absl::BytesToHexString(key.substr(0, kFolderNameBytes));
}

bool IsFolderName(const std::string& name) {
  return name.size() == 2 * kFolderNameBytes &&
         absl::c_all_of(name, [](char c) { return absl::ascii_isxdigit(c); });
}

// Collections may have been deleted, and nobody tells this client. Other folders are the user's
// own: the state folder may hold more than what this client wrote.
void RemoveUnused(const std::string& root) {
  const auto oldest = fs::file_time_type::clock::now() - kUnusedTableAge;
  for (const fs::path& folder : FilesOf(root, "")) {
    std::error_code error;
    if (!IsFolderName(folder.filename().string())) continue;
    if (!fs::is_directory(fs::symlink_status(folder, error))) continue;
    const fs::file_time_type used = fs::last_write_time(folder, error);
    if (!error && used < oldest) fs::remove_all(folder, error);
  }
}

struct Index {
  std::string latest, former;  // digests, one after another
};

Index ReadIndex(const std::string& path) {
  const absl::StatusOr<std::string> content = LoadChecked(path);
  if (!content.ok()) return {};  // absent, or damaged: then its blocks are removed
  const size_t end = content->find('\n');
  if (end == std::string::npos) return {};
  return {.latest = absl::HexStringToBytes(content->substr(0, end)),
          .former = absl::HexStringToBytes(content->substr(end + 1))};
}

absl::Status SaveBlock(const std::string& path, const std::string& content) {
  const auto file = PrivateFile::Create(kWhat, path);
  if (!file.ok()) return absl::UnavailableError(file.status().message());
  return (*file)->Commit(content, PrivateFile::Durability::kUnsynced);
}

}  // namespace

RowTableCache::RowTableCache(const std::string& state_folder, const std::string& server,
                             const std::string& collection_uuid)
    : root_(state_folder + "/rows"),
      folder_(absl::StrCat(root_, "/", FolderName(server, collection_uuid))) {}

RowTableCache::Blocks RowTableCache::Load(Kind kind, int64_t max_bytes) {
  Blocks blocks;
  std::error_code absent;
  fs::last_write_time(folder_, fs::file_time_type::clock::now(), absent);  // it is in use
  std::vector<fs::path> files = FilesOf(folder_, PrefixOf(kind));
  std::set<std::string> latest;
  for (const std::string& digest : DigestsIn(ReadIndex(IndexPath(kind)).latest)) {
    latest.insert(NameOf(kind, digest));
  }
  absl::c_partition(
      files, [&](const fs::path& path) { return latest.contains(path.filename().string()); });
  for (const fs::path& path : files) {
    std::error_code unknown;
    if (fs::file_size(path, unknown) > static_cast<uintmax_t>(max_bytes)) continue;
    absl::StatusOr<std::string> content =
        ReadFile(kWhat, path.string(), static_cast<size_t>(max_bytes));
    if (!content.ok()) continue;  // another process has removed it
    max_bytes -= std::ssize(*content);
    const std::string digest = Sha256::Of(*content);
    if (NameOf(kind, digest) == path.filename().string()) {
      blocks[digest] = *std::move(content);
    } else {
      std::error_code ignored;
      fs::remove(path, ignored);
    }
  }
  return blocks;
}

absl::Status RowTableCache::Save(Kind kind, const std::string& digests, const Blocks& received) {
  PM_RETURN_IF_ERROR(CreateFolder(root_));
  RemoveUnused(root_);
  PM_RETURN_IF_ERROR(CreateFolder(folder_));
  FolderLock lock(kWhat, folder_);
  PM_RETURN_IF_ERROR(lock.Take(kMaxLockWait));
  for (const auto& [digest, content] : received) {
    PM_RETURN_IF_ERROR(SaveBlock(absl::StrCat(folder_, "/", NameOf(kind, digest)), content));
  }
  const std::string index_path = IndexPath(kind);
  Index index = ReadIndex(index_path);
  if (index.latest != digests) {
    index = {.latest = digests, .former = index.latest};
    PM_RETURN_IF_ERROR(SaveChecked(kWhat, index_path,
                                   absl::StrCat(absl::BytesToHexString(index.latest), "\n",
                                                absl::BytesToHexString(index.former))));
  }
  std::set<std::string> kept;
  for (const std::string* of : {&index.latest, &index.former}) {
    for (const std::string& digest : DigestsIn(*of)) kept.insert(NameOf(kind, digest));
  }
  for (const fs::path& path : FilesOf(folder_, PrefixOf(kind))) {
    std::error_code ignored;
    if (!kept.contains(path.filename().string())) fs::remove(path, ignored);
  }
  return absl::OkStatus();
}

std::string RowTableCache::IndexPath(Kind kind) const {
  return absl::StrCat(folder_, kind == Kind::kTable ? "/index-table" : "/index-payloads");
}

absl::Status RowTableCache::Clear() {
  std::error_code error;
  if (!fs::exists(folder_, error)) return absl::OkStatus();
  FolderLock lock(kWhat, folder_);
  PM_RETURN_IF_ERROR(lock.Take(kMaxLockWait));
  for (const fs::path& path : FilesOf(folder_, "")) fs::remove(path, error);
  return absl::OkStatus();
}

}  // namespace privatemail::client
