#include "tests/testing/disk_model.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace privatemail::simulated {
namespace {

constexpr size_t kSector = 512;

int64_t KernelTime() {
  timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);  // the clock of the kernel's time stamps
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Disk* disk = nullptr;

void File::Apply(const Change& change) {
  switch (change.kind) {
    case Change::Kind::kWrite: {
      const auto end = static_cast<size_t>(change.at) + change.bytes.size();
      if (content.size() < end) content.resize(end);
      content.replace(static_cast<size_t>(change.at), change.bytes.size(), change.bytes);
      return;
    }
    case Change::Kind::kSize:
      content.resize(static_cast<size_t>(change.at));
      return;
    case Change::Kind::kStamp:
      stamp = change.at;
  }
}

Disk::Disk(std::string folder, const PowerCut& cut, const Stamps& stamps, Shared* shared)
    : folder_(std::move(folder)), cut_(cut), coins_(cut.seed), shared_(shared) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::ifstream in(entry.path(), std::ios::binary);
    auto file = std::make_shared<File>();
    file->content.assign(std::istreambuf_iterator<char>(in), {});
    const auto stamp = stamps.find(entry.path().filename());
    file->stamp = file->seen_stamp = stamp == stamps.end() ? KernelTime() : stamp->second;
    names_[entry.path().filename()] = file;
  }
  durable_names_ = names_;
}

bool Disk::Holds(const char* path, std::string* name) const {
  if (path == folder_) return name->clear(), true;
  const std::filesystem::path whole(path);
  if (whole.parent_path() != folder_) return false;
  *name = whole.filename();
  return true;
}

File* Disk::Of(int descriptor) {
  const auto found = open_.find(descriptor);
  return found == open_.end() ? nullptr : found->second.get();
}

void Disk::Count() {
  if (++shared_->run.calls >= cut_.before_call) Cut();
}

void Disk::Opened(int descriptor, const std::string& name) {
  if (name.empty()) {
    folders_[descriptor] = true;
    return;
  }
  std::shared_ptr<File>& file = names_[name];
  if (file == nullptr) {
    file = std::make_shared<File>();
    file->stamp = file->seen_stamp = KernelTime();
    renamings_.push_back({name, file});
  }
  open_[descriptor] = file;
}

void Disk::Closed(int descriptor) {
  open_.erase(descriptor);
  folders_.erase(descriptor);
}

void Disk::Renamed(const std::string& name, std::shared_ptr<File> file) {
  renamings_.push_back({name, file});
  if (file == nullptr) {
    names_.erase(name);
  } else {
    names_[name] = std::move(file);
  }
}

void Disk::Changed(File& file, Change change) {
  file.pending.push_back(std::move(change));
  file.seen_stamp = KernelTime();
  file.pending.push_back({Change::Kind::kStamp, file.seen_stamp});
}

void Disk::Synced(int descriptor, bool stamp_too) {
  if (cut_.disk_ignores_syncs) return;
  if (File* file = Of(descriptor)) {
    std::vector<Change> left;
    for (Change& change : file->pending) {
      if (change.kind == Change::Kind::kStamp && !stamp_too) {
        left.push_back(std::move(change));
      } else {
        file->Apply(change);
      }
    }
    file->pending = std::move(left);
    return;
  }
  for (const Renaming& renaming : renamings_) Apply(renaming);
  renamings_.clear();
}

bool Disk::Survives(bool is_stamp) {
  switch (cut_.unsynced) {
    case Unsynced::kLost:
      return false;
    case Unsynced::kKept:
      return true;
    case Unsynced::kAllButStamps:
      return !is_stamp;
    case Unsynced::kStampsOnly:
      return is_stamp;
    case Unsynced::kHalf:
      return coins_() % 2 != 0;
  }
  std::abort();
}

void Disk::Apply(const Renaming& renaming) {
  if (renaming.file == nullptr) {
    durable_names_.erase(renaming.name);
  } else {
    durable_names_[renaming.name] = renaming.file;
  }
}

// Applies the pending changes that survive.
void Disk::Settle(File& file) {
  for (const Change& change : file.pending) {
    if (change.kind != Change::Kind::kWrite) {
      if (Survives(change.kind == Change::Kind::kStamp)) file.Apply(change);
      continue;
    }
    for (size_t at = 0; at < change.bytes.size();) {
      const auto offset = static_cast<size_t>(change.at) + at;
      const size_t count = std::min(change.bytes.size() - at, kSector - offset % kSector);
      if (Survives(false)) {
        file.Apply(
            {Change::Kind::kWrite, static_cast<int64_t>(offset), change.bytes.substr(at, count)});
      }
      at += count;
    }
  }
}

void Disk::Cut() {
  disk = nullptr;  // later calls reach the real folder only
  for (const Renaming& renaming : renamings_) {
    if (Survives(false)) Apply(renaming);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::filesystem::remove(entry.path());
  }
  SharedStamp* stamp = shared_->stamps;
  for (const auto& [name, file] : durable_names_) {
    if (stamp == std::end(shared_->stamps) || name.size() >= sizeof(stamp->name)) std::abort();
    Settle(*file);
    std::ofstream(folder_ + "/" + name, std::ios::binary) << file->content;
    std::strcpy(stamp->name, name.c_str());
    (stamp++)->nanoseconds = file->stamp;
  }
  _exit(0);
}

}  // namespace privatemail::simulated
