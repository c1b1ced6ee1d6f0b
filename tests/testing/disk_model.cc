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

int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
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
  }
}

Disk::Disk(std::string folder, const PowerCut& cut, const Births& births, Shared* shared)
    : folder_(std::move(folder)), cut_(cut), coins_(cut.seed), shared_(shared) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::ifstream in(entry.path(), std::ios::binary);
    auto file = std::make_shared<File>();
    file->content.assign(std::istreambuf_iterator<char>(in), {});
    const auto birth = births.find(entry.path().filename());
    file->born = birth == births.end() ? Now() : birth->second;
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
    file->born = Now();
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

void Disk::Changed(File& file, Change change) { file.pending.push_back(std::move(change)); }

void Disk::Synced(int descriptor) {
  if (cut_.disk_ignores_syncs) return;
  if (File* file = Of(descriptor)) {
    for (const Change& change : file->pending) file->Apply(change);
    file->pending.clear();
    return;
  }
  for (const Renaming& renaming : renamings_) Apply(renaming);
  renamings_.clear();
}

bool Disk::Survives() {
  switch (cut_.unsynced) {
    case Unsynced::kLost:
      return false;
    case Unsynced::kKept:
      return true;
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
      if (Survives()) file.Apply(change);
      continue;
    }
    for (size_t at = 0; at < change.bytes.size();) {
      const auto offset = static_cast<size_t>(change.at) + at;
      const size_t count = std::min(change.bytes.size() - at, kSector - offset % kSector);
      if (Survives()) {
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
    if (Survives()) Apply(renaming);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::filesystem::remove(entry.path());
  }
  SharedBirth* birth = shared_->births;
  for (const auto& [name, file] : durable_names_) {
    if (birth == std::end(shared_->births) || name.size() >= sizeof(birth->name)) std::abort();
    Settle(*file);
    std::ofstream(folder_ + "/" + name, std::ios::binary) << file->content;
    std::strcpy(birth->name, name.c_str());
    (birth++)->nanoseconds = file->born;
  }
  _exit(0);
}

}  // namespace privatemail::simulated
