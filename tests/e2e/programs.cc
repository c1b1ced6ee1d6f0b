#include "tests/e2e/programs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/strip.h"

namespace privatemail::e2e {
namespace {

constexpr int kLongestSilenceMilliseconds = 300'000;

// Only calls that are safe between fork and exec.
[[noreturn]] void BecomeProgram(char* const* arguments, int out, int err) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (::dup2(nothing, 0) == 0 && ::dup2(out, 1) == 1 && ::dup2(err, 2) == 2) {
    ::execv(arguments[0], arguments);
  }
  ::_exit(127);
}

std::string WholeFile(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t size; (size = ::pread(file, buffer, sizeof(buffer), text.size())) > 0;) {
    text.append(buffer, static_cast<size_t>(size));
  }
  return text;
}

}  // namespace

Command Join(Command command, const Command& more) {
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

std::vector<nlohmann::json> Outcome::lines() const {
  std::vector<nlohmann::json> all;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) {
    const auto parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    all.push_back(parsed.is_discarded() ? nlohmann::json() : parsed);
  }
  return all;
}

nlohmann::json Outcome::json() const {
  const std::vector<nlohmann::json> all = lines();
  return all.size() == 1 ? all[0] : nlohmann::json();
}

Program::Program(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int pipe[2];
  err_ = ::memfd_create("standard error", MFD_CLOEXEC);
  if (err_ < 0 || ::pipe2(pipe, O_CLOEXEC) != 0) std::abort();
  out_ = pipe[0];
  pid_ = ::fork();
  if (pid_ < 0) std::abort();
  if (pid_ == 0) BecomeProgram(pointers.data(), pipe[1], err_);
  ::close(pipe[1]);
}

Program::~Program() {
  Signal(SIGKILL);
  Wait();
  ::close(out_);
  ::close(err_);
}

void Program::Signal(int signal) const {
  if (outcome_) return;
  ::kill(pid_, signal);
  // On a busy machine a thread may run on for a while.
  siginfo_t stopped;
  if (signal == SIGSTOP) ::waitid(P_PID, pid_, &stopped, WSTOPPED | WEXITED | WNOWAIT);
}

std::string Program::err() const { return WholeFile(err_); }

bool Program::ReadMore() {
  pollfd ready = {out_, POLLIN, 0};
  if (::poll(&ready, 1, kLongestSilenceMilliseconds) == 0) Signal(SIGKILL);
  char buffer[4096];
  ssize_t size;
  do {
    size = ::read(out_, buffer, sizeof(buffer));
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return false;
  text_.append(buffer, static_cast<size_t>(size));
  return true;
}

std::optional<std::string> Program::ReadLine() {
  size_t end;
  while ((end = text_.find('\n', line_start_)) == std::string::npos) {
    if (!ReadMore()) return std::nullopt;
  }
  const size_t start = std::exchange(line_start_, end + 1);
  return text_.substr(start, end - start);
}

Outcome Program::Wait() {
  if (outcome_) return *outcome_;
  while (ReadMore()) {
  }
  int status = 0;
  rusage used = {};
  while (::wait4(pid_, &status, 0, &used) < 0 && errno == EINTR) {
  }
  outcome_ = {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_,
              WholeFile(err_), int64_t{1024} * used.ru_maxrss};
  return *outcome_;
}

Daemon::Daemon(const std::string& data_directory, std::vector<std::string> flags,
               const std::string& listen, const std::string& program)
    : program_([&] {
        if (absl::c_count(flags, "--auto-build-share") == 0) {
          flags.insert(flags.end(), {"--auto-build-share", "0"});  // versions are what tests build
        }
        flags.insert(flags.begin(), {program, "--data-dir", data_directory, "--listen", listen});
        return std::move(flags);
      }()) {
  while (const std::optional<std::string> line = program_.ReadLine()) {
    absl::string_view rest = *line;
    if (absl::ConsumePrefix(&rest, "trust this server with: --trust "))
      fingerprint_ = std::string(rest);
    if (absl::ConsumePrefix(&rest, "or with: --ca ")) {
      certificate_ = std::string(rest);
      admin_key_ = data_directory + "/admin.key";
    }
    if (absl::ConsumePrefix(&rest, "metrics and probes: http://")) {
      http_ = std::string(rest.substr(0, rest.find('/')));
    }
    if (absl::ConsumePrefix(&rest, "listening on ")) {
      address_ = std::string(rest);
      return;
    }
  }
}

Command User::CommandLine(const Command& command) const {
  const Command arguments = Join(Join({PRIVATEMAIL}, command), flags);
  return state.empty() ? arguments : Join(arguments, {"--state", state});
}

Outcome User::Run(const Command& command) const { return Program(CommandLine(command)).Wait(); }

}  // namespace privatemail::e2e
