#include "common/base/file_trial.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/core_dumps.h"
#include "common/base/field_error.h"

namespace privatemail {
namespace {

constexpr char kGood[] = "good\n";

// A sanitizer has many pages before the limit.
void Limit(const TrialLimits& limits) {
  DisableCoreDumps();
  ::alarm(limits.seconds);
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  for (int field = 0; field < 6; ++field) file >> pages;  // the sixth: data and stack
  const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + limits.bytes;
  const rlimit limit = {bytes, bytes};
  ::setrlimit(RLIMIT_DATA, &limit);
}

std::string EndOf(int status) {
  if (!WIFSIGNALED(status)) return "ended before it was tried";
  const int signal = WTERMSIG(status);
  if (signal == SIGALRM) return "could not be tried within the time for it";
  if (signal == SIGKILL) return "needs more memory than there is";
  return absl::StrCat("ends the process that runs it (", ::strsignal(signal), ")");
}

absl::Status CannotStart(int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("a process for it cannot be started: ", std::strerror(error)));
}

// Starts a command that prints to a file.
absl::StatusOr<pid_t> StartCommand(const std::vector<std::string>& command, int output) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, output, 1);
  ::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);  // the library's log
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, words[0], &files, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return CannotStart(error);
  return child;
}

// Starts a fork that prints to a file and meets signals as a new program does.
absl::StatusOr<pid_t> StartFork(absl::FunctionRef<int()> run, unsigned seconds, int output) {
  const pid_t child = ::fork();
  if (child < 0) return CannotStart(errno);
  if (child > 0) return child;
  ::alarm(seconds);  // before anything that may wait for a lock of a lost thread
  for (const int signal : {SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(output, 1);
  ::dup2(::open("/dev/null", O_WRONLY), 2);  // the library's log
  // An exception must not reach the code of the program.
  ::_exit([&]() noexcept { return run(); }());
}

// Returns what the child printed that `start` started, and its status of waitpid. A child that is
// not done in time is killed, with the status of one that its own alarm ended.
absl::StatusOr<std::pair<std::string, int>> Run(
    absl::FunctionRef<absl::StatusOr<pid_t>(int output)> start, unsigned seconds) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + std::chrono::seconds(seconds);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return CannotStart(errno);
  const absl::Cleanup close_reader = [&] { ::close(ends[0]); };
  const absl::StatusOr<pid_t> child = start(ends[1]);
  ::close(ends[1]);
  if (!child.ok()) return child.status();
  std::string printed;
  char buffer[4096];
  ssize_t count = 1;
  bool is_late = false;
  while (count != 0 && !is_late) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    pollfd polled = {ends[0], POLLIN, 0};
    is_late = ::poll(&polled, 1, static_cast<int>(std::max<int64_t>(0, left.count()))) == 0;
    if (polled.revents == 0) continue;
    count = ::read(ends[0], buffer, sizeof(buffer));
    if (count > 0) printed.append(buffer, static_cast<size_t>(count));
  }
  if (is_late) ::kill(*child, SIGKILL);
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (is_late) status = SIGALRM;
  return std::pair(std::move(printed), status);
}

absl::Status Try(absl::FunctionRef<absl::StatusOr<pid_t>(int output)> start, unsigned seconds,
                 const std::string& path, absl::string_view expected) {
  const auto ended = Run(start, seconds);
  if (!ended.ok()) return WithContext(absl::StrCat(path, ": "), ended.status());
  const auto& [printed, status] = *ended;
  if (printed == kGood) return absl::OkStatus();
  if (!printed.empty()) return absl::InvalidArgumentError(printed);
  return absl::InvalidArgumentError(absl::StrCat(path, ": expected ", expected, ", got one that ",
                                                 EndOf(status),
                                                 ": it is damaged, or made for another program"));
}

}  // namespace

absl::Status TryInChild(const std::vector<std::string>& command, unsigned seconds,
                        const std::string& path, absl::string_view expected) {
  return Try([&](int output) { return StartCommand(command, output); }, seconds, path, expected);
}

absl::Status TryInFork(absl::FunctionRef<int()> run, unsigned seconds, const std::string& path,
                       absl::string_view expected) {
  return Try([&](int output) { return StartFork(run, seconds, output); }, seconds, path, expected);
}

int ReportTrial(const TrialLimits& limits, absl::FunctionRef<absl::Status()> trial) {
  Limit(limits);
  // Alone for the verdict: the library's log may write to the standard output, too.
  FILE* const output = ::fdopen(::dup(1), "w");
  if (output == nullptr || ::dup2(2, 1) < 0) return 1;
  const absl::Status status = trial();
  std::fputs(status.ok() ? kGood : std::string(status.message()).c_str(), output);
  return std::fclose(output) == 0 ? 0 : 1;
}

}  // namespace privatemail
