#include "tests/testing/synced_files.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/testing/synced_files_layout.h"

namespace privatemail {
namespace {

using synced::KeyOf;
using synced::kFiles;
using synced::kNames;

constexpr size_t kSector = 512;

[[noreturn]] void GiveUp(const std::string& reason) {
  std::cerr << "no disk for this test: " << reason << std::endl;
  std::abort();
}

constexpr char kPreload[] = "preload.so";

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  std::string bytes(static_cast<size_t>(file.tellg()), '\0');
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

void WriteAs(const struct stat& owner, const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file || ::chmod(path.c_str(), 0600) != 0 ||
      ::chown(path.c_str(), owner.st_uid, owner.st_gid) != 0) {
    GiveUp("cannot write " + path);
  }
}

void EnsureFolder(const struct stat& owner, const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno == EEXIST) return;
    GiveUp("cannot make " + path);
  }
  if (::chown(path.c_str(), owner.st_uid, owner.st_gid) != 0) GiveUp("chown");
}

// Writes the file only if its content differs.
void EnsureContent(const struct stat& owner, const std::string& path, const std::string& bytes) {
  std::error_code none;
  if (std::filesystem::file_size(path, none) == bytes.size() && ContentOf(path) == bytes) return;
  std::filesystem::remove(path);  // other hard links keep their content
  WriteAs(owner, path, bytes);
}

void EnsureLink(const std::string& file, const std::string& name) {
  std::error_code none;
  if (std::filesystem::equivalent(file, name, none)) return;
  std::filesystem::remove(name);
  std::filesystem::create_hard_link(file, name);
}

// Relative paths of all entries below a folder, parents first.
std::vector<std::string> PathsBelow(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    paths.push_back(entry.path().string().substr(folder.size()));
  }
  return paths;
}

// Removes the entries below `folder` that are not in `paths`.
void RemoveAllBut(const std::map<std::string, std::string>& paths, const std::string& folder) {
  for (const std::string& path : PathsBelow(folder)) {
    if (paths.count(path) == 0) std::filesystem::remove_all(folder + path);
  }
}

ino_t InodeOf(const std::string& path) {
  struct stat status = {};
  ::lstat(path.c_str(), &status);
  return status.st_ino;
}

std::string Half(const std::string& durable, const std::string& working, std::mt19937_64& coins) {
  std::string mixed((coins() % 2 == 0 ? durable : working).size(), '\0');
  for (size_t at = 0; at < mixed.size(); at += kSector) {
    const std::string& from = coins() % 2 == 0 ? durable : working;
    if (at >= from.size()) continue;
    const size_t size = std::min({kSector, from.size() - at, mixed.size() - at});
    std::copy_n(from.begin() + static_cast<ptrdiff_t>(at), size,
                mixed.begin() + static_cast<ptrdiff_t>(at));
  }
  return mixed;
}

}  // namespace

SyncedFiles::SyncedFiles(std::string folder) : folder_(std::move(folder)) {
  if (::stat(folder_.c_str(), &owner_) != 0) GiveUp(folder_ + " does not exist");
  if (::chown(disk_.path().c_str(), owner_.st_uid, owner_.st_gid) != 0) GiveUp("chown");
  WriteAs(owner_, disk_.path() + synced::kLock, "");
  // A copy that the server's user can read.
  WriteAs(owner_, disk_ / kPreload, ContentOf(PRIVATEMAIL_SYNCED_FILES));
  Reset();
}

std::vector<std::string> SyncedFiles::environment() const {
  return {absl::StrCat("LD_PRELOAD=", disk_ / kPreload),
          absl::StrCat(synced::kWorkVariable, "=", folder_),
          absl::StrCat(synced::kDiskVariable, "=", disk_.path())};
}

// Makes the disk equal to the folder. Unchanged files, nearly all, are not rewritten.
void SyncedFiles::Reset() {
  MakeRoom();
  std::filesystem::remove(disk_.path() + synced::kIgnored);
  const std::string files = disk_.path() + kFiles;
  const std::string names = disk_.path() + kNames;
  for (const std::string& folder : {files, names}) EnsureFolder(owner_, folder);
  const std::map<std::string, std::string> working = Names(UnsyncedNames::kKept);
  std::map<std::string, std::string> keys;
  for (const auto& [path, key] : working) {
    if (key.empty()) {
      EnsureFolder(owner_, names + path);
      continue;
    }
    keys[key] = path;
    EnsureContent(owner_, files + key, ContentOf(folder_ + path));
    EnsureLink(files + key, names + path);
  }
  RemoveAllBut(working, names);
  RemoveAllBut(keys, files);
}

void SyncedFiles::SetControl(const char* name, const std::string& prefix) const {
  // Written atomically, because the server reads it at any time.
  WriteAs(owner_, disk_ / "control", prefix);
  std::filesystem::rename(disk_ / "control", disk_.path() + name);
}

void SyncedFiles::IgnoreSyncs(const std::string& prefix) { SetControl(synced::kIgnored, prefix); }
void SyncedFiles::Fill(const std::string& prefix) { SetControl(synced::kFull, prefix); }
void SyncedFiles::MakeRoom() { std::filesystem::remove(disk_.path() + synced::kFull); }

void SyncedFiles::Stop() {
  lock_ = ::open((disk_.path() + synced::kLock).c_str(), O_RDWR | O_CLOEXEC);
  if (::flock(lock_, LOCK_EX) != 0) GiveUp("flock");
}

std::string SyncedFiles::Remains(const std::string& key, const std::string& working,
                                 UnsyncedBytes bytes) {
  const std::string durable = ContentOf(disk_.path() + kFiles + key);
  if (working.empty() || bytes == UnsyncedBytes::kLost) return durable;
  const std::string seen = ContentOf(folder_ + working);
  return bytes == UnsyncedBytes::kKept ? seen : Half(durable, seen, coins_);
}

// By path, the key of each file that is there after the cut; of folders, an empty one.
std::map<std::string, std::string> SyncedFiles::Names(UnsyncedNames unsynced) const {
  const bool kept = unsynced == UnsyncedNames::kKept;
  const std::string names = kept ? folder_ : disk_.path() + kNames;
  const std::string files = disk_.path() + kFiles;
  std::map<ino_t, std::string> keys;
  if (!kept) {
    for (const std::string& key : PathsBelow(files)) keys[InodeOf(files + key)] = key;
  }
  std::map<std::string, std::string> found;
  for (const std::string& path : PathsBelow(names)) {
    std::string& key = found[path];
    if (std::filesystem::is_directory(names + path)) continue;
    key = kept ? KeyOf(AT_FDCWD, (names + path).c_str()) : keys[InodeOf(names + path)];
    if (key.empty()) GiveUp("files have no time of birth at " + names);
  }
  return found;
}

void SyncedFiles::Cut(const PowerLoss& loss) {
  coins_.seed(loss.seed);
  const std::map<std::string, std::string> left = Names(loss.names);
  std::map<std::string, std::string> contents;
  std::map<std::string, std::string> working;  // path by key: a file may have another name there
  for (const auto& [path, key] : Names(UnsyncedNames::kKept)) working[key] = path;
  for (const auto& [path, key] : left) {
    if (!key.empty()) contents[path] = Remains(key, working[key], loss.bytes);
  }
  RemoveAllBut(left, folder_);
  for (const auto& [path, key] : left) {
    if (key.empty()) {
      EnsureFolder(owner_, folder_ + path);
    } else {
      EnsureContent(owner_, folder_ + path, contents[path]);
    }
  }
  Reset();
  ::close(lock_);
}

}  // namespace privatemail
