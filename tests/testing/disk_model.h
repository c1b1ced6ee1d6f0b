// The model of simulated_disk.h: a flat folder as a process sees it, as the disk holds it, and the
// changes in between.
#ifndef PRIVATEMAIL_TESTS_TESTING_DISK_MODEL_H_
#define PRIVATEMAIL_TESTS_TESTING_DISK_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/testing/simulated_disk.h"

namespace privatemail::simulated {

inline constexpr size_t kMaxFiles = 8;

struct SharedBirth {
  char name[64];
  int64_t nanoseconds;
};
// In memory that parent and child share.
struct Shared {
  ProcessRun run;
  SharedBirth births[kMaxFiles];
};

// An unsynced change of a file.
struct Change {
  enum class Kind { kWrite, kSize };
  Kind kind;
  int64_t at = 0;  // an offset or a size
  std::string bytes = {};
};

struct File {
  std::string content;  // on disk
  int64_t born = 0;
  std::vector<Change> pending = {};

  void Apply(const Change& change);
};
using Names = std::map<std::string, std::shared_ptr<File>>;
struct Renaming {
  std::string name;
  std::shared_ptr<File> file;  // null: removed
};

class Disk {
 public:
  Disk(std::string folder, const PowerCut& cut, const Births& births, Shared* shared);

  // Sets `name` within the folder, "" for the folder itself; returns false for other paths.
  bool Holds(const char* path, std::string* name) const;
  bool Exists(const std::string& name) const { return name.empty() || names_.count(name) > 0; }
  std::shared_ptr<File> Named(const std::string& name) { return names_[name]; }
  // Null for the folder and for files outside.
  File* Of(int descriptor);
  bool Knows(int descriptor) { return Of(descriptor) != nullptr || folders_.count(descriptor) > 0; }

  // Counts a call before it is made; the power may be cut instead.
  void Count();

  // Records the effect of a call. file is null if the name was removed.
  void Opened(int descriptor, const std::string& name);
  void Closed(int descriptor);
  void Renamed(const std::string& name, std::shared_ptr<File> file);
  void Changed(File& file, Change change);
  void Synced(int descriptor);

  // Writes the disk's state to the real folder and the shared births, and ends the process.
  [[noreturn]] void Cut();

 private:
  bool Survives();
  void Apply(const Renaming& renaming);
  void Settle(File& file);

  const std::string folder_;
  const PowerCut cut_;
  std::mt19937_64 coins_;
  Shared* const shared_;
  Names names_;          // as the process sees them
  Names durable_names_;  // as the disk holds them
  std::vector<Renaming> renamings_;
  std::map<int, std::shared_ptr<File>> open_;
  std::map<int, bool> folders_;
};

extern Disk* disk;  // null outside a run and after its cut

}  // namespace privatemail::simulated

#endif  // PRIVATEMAIL_TESTS_TESTING_DISK_MODEL_H_
