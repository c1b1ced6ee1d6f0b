// Child processes: the daemon, the command line, and other programs.
#ifndef PRIVATEMAIL_TESTS_E2E_PROGRAMS_H_
#define PRIVATEMAIL_TESTS_E2E_PROGRAMS_H_

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace privatemail::client {}

namespace privatemail::e2e {

using namespace client;  // NOLINT: the SDK that these tests call

// A program and its arguments, or a command of `privatemail` and its flags.
using Command = std::vector<std::string>;

Command Join(Command command, const Command& more);

// The end of a process.
struct Outcome {
  int exit_code = -1;  // 128 + the signal that ended it, as a shell counts
  std::string out;
  std::string err;
  int64_t peak_memory = 0;  // bytes that were resident at once

  // Lines of standard output as JSON; null for a line that is not JSON.
  std::vector<nlohmann::json> lines() const;
  // The only line; null if there is not exactly one.
  nlohmann::json json() const;
};

// A child process with its standard output in a pipe. Killed and reaped by the destructor, or by
// the kernel if the test dies first.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  // After SIGSTOP it returns once all threads have stopped.
  void Signal(int signal) const;

  // Waits for the next line of standard output; nullopt at its end. A child that prints nothing for
  // a minute is killed, which ends its output.
  std::optional<std::string> ReadLine();

  // Standard error so far.
  std::string err() const;

  // Waits for the end. `out` includes the lines that ReadLine returned.
  Outcome Wait();

 private:
  bool ReadMore();

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;  // an unnamed file, because a pipe could fill up
  std::string text_;
  size_t line_start_ = 0;
  std::optional<Outcome> outcome_;
};

// A privatemaild process on its own loopback port.
class Daemon {
 public:
  // Waits until it listens or has ended; see listening().
  explicit Daemon(const std::string& data_directory, std::vector<std::string> flags = {},
                  const std::string& listen = "127.0.0.1:0",
                  const std::string& program = PRIVATEMAILD);

  bool listening() const { return !address_.empty(); }
  const std::string& address() const { return address_; }          // HOST:PORT
  const std::string& http() const { return http_; }                // IP:PORT; empty without --http
  const std::string& fingerprint() const { return fingerprint_; }  // empty with --insecure
  const std::string& certificate() const { return certificate_; }  // path of a PEM file
  const std::string& admin_key() const { return admin_key_; }      // path; empty with --insecure
  Program& program() { return program_; }

 private:
  Program program_;
  std::string address_;
  std::string http_;
  std::string fingerprint_;
  std::string certificate_;
  std::string admin_key_;
};

// A user of `privatemail` with a server and a state folder.
struct User {
  std::vector<std::string> flags;  // --server and how to trust it
  std::string state;               // folder

  Command CommandLine(const Command& command) const;
  Outcome Run(const Command& command) const;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_PROGRAMS_H_
