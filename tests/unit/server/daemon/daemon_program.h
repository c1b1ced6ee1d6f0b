// Runs the program privatemaild in a process.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_DAEMON_DAEMON_PROGRAM_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_DAEMON_DAEMON_PROGRAM_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/fixtures.h"
#include "tests/unit/server/services/daemon_state.h"

namespace privatemail::testing {

// A privatemaild process with its output in files.
class Program {
 public:
  Program(const std::string& directory, std::vector<std::string> flags) : directory_(directory) {
    flags.insert(flags.begin(), {PRIVATEMAILD, "--data-dir", directory + "/data"});
    std::vector<char*> arguments;
    for (std::string& flag : flags) arguments.push_back(flag.data());
    arguments.push_back(nullptr);
    std::filesystem::remove(directory + "/out");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(::open((directory + "/out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      ::dup2(::open((directory + "/err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
  }

  ~Program() {
    if (pid_ > 0) StopWith(SIGKILL);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string out() const { return Contents(directory_ + "/out"); }
  std::string err() const { return Contents(directory_ + "/err"); }

  bool WaitUntilListening() const {
    return WaitUntil([&] { return absl::StrContains(out(), "listening on ") || HasExited(); }) &&
           absl::StrContains(out(), "listening on ");
  }

  bool WaitUntilLogged(const std::string& text) const {
    return WaitUntil([&] { return absl::StrContains(err(), text); });
  }

  bool HasExited() const {
    siginfo_t info = {};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

  void Signal(int signal) const { ::kill(pid_, signal); }
  // To every thread but the first, as the kernel may do.
  void SignalOthers(int signal) const {
    const std::string tasks = absl::StrCat("/proc/", pid_, "/task");
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      const pid_t thread = std::stoi(task.path().filename());
      if (thread != pid_) ::syscall(SYS_tgkill, pid_, thread, signal);
    }
  }
  int StopWith(int signal) {
    Signal(signal);
    return ExitCode();
  }
  int ExitCode() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::string directory_;
  pid_t pid_ = 0;
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_DAEMON_DAEMON_PROGRAM_H_
