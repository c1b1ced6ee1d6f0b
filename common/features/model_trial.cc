#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <opencv2/core/version.hpp>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/core_dumps.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/features/feature_extractor.h"
#include "common/features/onnx_model.h"

namespace privatemail {
namespace {

constexpr unsigned kMaxSeconds = 120;
constexpr char kGood[] = "good\n";

struct Trials {
  std::mutex mutex;  // guards the following
  std::vector<std::string> command;
  std::set<std::string> good;  // identities
};

Trials& Shared() {
  static Trials* const trials = new Trials;
  return *trials;
}

// Ends the child before memory or patience end. Half of the memory is shared by the extractors, one
// a thread, but each may have kEnough. A sanitizer has many pages before that.
void LimitResources() {
  DisableCoreDumps();
  ::alarm(kMaxSeconds);
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  for (int field = 0; field < 6; ++field) file >> pages;  // the sixth: data and stack
  constexpr rlim_t kEnough = rlim_t{2} << 30;
  const auto page = static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
  const rlim_t half = static_cast<rlim_t>(::sysconf(_SC_PHYS_PAGES)) / 2 * page;
  const rlim_t threads = std::max(1U, std::thread::hardware_concurrency());
  const rlim_t bytes = pages * page + std::min(half, std::max(kEnough, half / threads));
  const rlimit limit = {bytes, bytes};
  ::setrlimit(RLIMIT_DATA, &limit);
}

std::string EndOf(int status) {
  if (!WIFSIGNALED(status)) return "ended before it was tried";
  const int signal = WTERMSIG(status);
  if (signal == SIGALRM) return absl::StrCat("could not be run within ", kMaxSeconds, " s");
  if (signal == SIGKILL) return "needs more memory than there is";
  return absl::StrCat("ends the process that runs it (", ::strsignal(signal), ")");
}

// Returns what the command printed, and its status of waitpid.
absl::StatusOr<std::pair<std::string, int>> Run(const std::vector<std::string>& command) {
  const auto failed = [](int error) {
    return absl::FailedPreconditionError(
        absl::StrCat("a process for it cannot be started: ", std::strerror(error)));
  };
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(errno);
  const absl::Cleanup close_reader = [&] { ::close(ends[0]); };
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], 1);
  ::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);  // OpenCV's log
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, words[0], &files, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  if (error != 0) return failed(error);
  std::string printed;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = ::read(ends[0], buffer, sizeof(buffer))) > 0 || (count < 0 && errno == EINTR)) {
    if (count > 0) printed.append(buffer, static_cast<size_t>(count));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return std::pair(std::move(printed), status);
}

}  // namespace

void SetModelTrial(std::vector<std::string> command) {
  const std::lock_guard lock(Shared().mutex);
  Shared().command = std::move(command);
}

absl::Status TryModelInChild(const std::string& path, const std::string& identity) {
  Trials& trials = Shared();
  const std::lock_guard lock(trials.mutex);
  if (trials.command.empty() || trials.good.contains(identity)) return absl::OkStatus();
  std::vector<std::string> command = trials.command;
  command.insert(command.end(), {path, identity});
  const auto ended = Run(command);
  if (!ended.ok()) return WithContext(path, ended.status());
  const auto& [printed, status] = *ended;
  if (printed == kGood) {
    trials.good.insert(identity);
    return absl::OkStatus();
  }
  if (!printed.empty()) return absl::InvalidArgumentError(printed);
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected a model that OpenCV " CV_VERSION " can run, got one that ",
                   EndOf(status), ": it is damaged, or made for another program"));
}

int TryModel(const std::string& path, const std::string& identity) {
  LimitResources();
  // Alone for the verdict: OpenCV's log may write to the standard output, too.
  FILE* const output = ::fdopen(::dup(1), "w");
  if (output == nullptr || ::dup2(2, 1) < 0) return 1;
  std::optional<OnnxOptions> options = OnnxOptionsOf(identity);
  if (!options.has_value()) return 1;
  options->path = path;
  const auto extractor = MakeOnnxExtractor(*options);
  std::string verdict = kGood;
  if (!extractor.ok()) {
    verdict = std::string(extractor.status().message());
  } else if ((*extractor)->identity() != identity) {
    verdict = absl::StrCat(path, ": it changed while it was read");
  }
  std::fputs(verdict.c_str(), output);
  return std::fclose(output) == 0 ? 0 : 1;
}

}  // namespace privatemail
