#include "tests/testing/synced_files.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

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

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
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

void MakeFolderAs(const struct stat& owner, const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 || ::chown(path.c_str(), owner.st_uid, owner.st_gid) != 0) {
    GiveUp("cannot make " + path);
  }
}

// Paths of everything below a folder, each behind the folder that it is in.
std::vector<std::string> PathsBelow(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    paths.push_back(entry.path().string().substr(folder.size()));
  }
  return paths;
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
  struct stat owner = {};
  if (::stat(folder_.c_str(), &owner) != 0) GiveUp(folder_ + " is not there");
  if (::chown(disk_.path().c_str(), owner.st_uid, owner.st_gid) != 0) GiveUp("chown");
  WriteAs(owner, disk_.path() + synced::kLock, "");
  Reset();
}

std::vector<std::string> SyncedFiles::environment() const {
  return {std::string("LD_PRELOAD=") + PRIVATEMAIL_SYNCED_FILES,
          synced::kWorkVariable + ("=" + folder_), synced::kDiskVariable + ("=" + disk_.path())};
}

// All that is in the folder is on the disk.
void SyncedFiles::Reset() {
  MakeRoom();
  std::filesystem::remove(disk_.path() + synced::kIgnored);
  const std::string files = disk_.path() + kFiles;
  const std::string names = disk_.path() + kNames;
  struct stat owner = {};
  ::stat(folder_.c_str(), &owner);
  for (const std::string& folder : {files, names}) {
    std::filesystem::remove_all(folder);
    MakeFolderAs(owner, folder);
  }
  for (const std::string& path : PathsBelow(folder_)) {
    if (std::filesystem::is_directory(folder_ + path)) {
      MakeFolderAs(owner, names + path);
      continue;
    }
    const std::string key = KeyOf(AT_FDCWD, (folder_ + path).c_str());
    if (key.empty()) GiveUp("files have no time of birth at " + folder_);
    WriteAs(owner, files + key, ContentOf(folder_ + path));
    std::filesystem::create_hard_link(files + key, names + path);
  }
}

void SyncedFiles::SetControl(const char* name, const std::string& prefix) const {
  struct stat owner = {};
  ::stat(folder_.c_str(), &owner);
  // Whole at once for whoever reads it.
  WriteAs(owner, disk_ / "control", prefix);
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

// By key, the path of each file that the program sees.
std::map<std::string, std::string> SyncedFiles::Working() const {
  std::map<std::string, std::string> paths;
  for (const std::string& path : PathsBelow(folder_)) {
    if (std::filesystem::is_directory(folder_ + path)) continue;
    paths[KeyOf(AT_FDCWD, (folder_ + path).c_str())] = path;
  }
  return paths;
}

// By path, the key of each file that is there after the cut; of folders, an empty one.
std::map<std::string, std::string> SyncedFiles::Names(UnsyncedNames unsynced) const {
  const bool kept = unsynced == UnsyncedNames::kKept;
  const std::string names = kept ? folder_ : disk_.path() + kNames;
  const std::string files = disk_.path() + kFiles;
  std::map<ino_t, std::string> keys;
  for (const std::string& key : PathsBelow(files)) keys[InodeOf(files + key)] = key;
  std::map<std::string, std::string> found;
  for (const std::string& path : PathsBelow(names)) {
    std::string& key = found[path];
    if (std::filesystem::is_directory(names + path)) continue;
    key = kept ? KeyOf(AT_FDCWD, (names + path).c_str()) : keys[InodeOf(names + path)];
  }
  return found;
}

void SyncedFiles::Cut(const PowerLoss& loss) {
  coins_.seed(loss.seed);
  struct stat owner = {};
  ::stat(folder_.c_str(), &owner);
  std::map<std::string, std::string> working = Working();
  const std::string left = folder_ + ".left";
  MakeFolderAs(owner, left);
  for (const auto& [path, key] : Names(loss.names)) {  // in the order of paths: folders first
    if (key.empty()) {
      MakeFolderAs(owner, left + path);
    } else {
      WriteAs(owner, left + path, Remains(key, working[key], loss.bytes));
    }
  }
  std::filesystem::remove_all(folder_);
  std::filesystem::rename(left, folder_);
  Reset();
  ::close(lock_);
}

}  // namespace privatemail
