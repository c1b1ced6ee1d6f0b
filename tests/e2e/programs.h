// The built programs, run as a user runs them: processes, exit codes and what they print.
#ifndef PRIVATEMAIL_TESTS_E2E_PROGRAMS_H_
#define PRIVATEMAIL_TESTS_E2E_PROGRAMS_H_

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace privatemail::e2e {

// How a process ended and what it printed.
struct Outcome {
  int exit_code = -1;  // 128 + the signal that ended it, as a shell counts
  std::string out;
  std::string err;

  // Each line of standard output as JSON; what is none becomes null.
  std::vector<nlohmann::json> lines() const;
  // The only line.
  nlohmann::json json() const;
};

// A child process with its standard output in a pipe. Killed and reaped at the end of its scope,
// and by the kernel should the test itself die first.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;

  // Waits for the next line of standard output; none when the output has ended. A child that says
  // nothing for a minute is killed, which ends its output.
  std::optional<std::string> ReadLine();

  // Waits for the end. `out` holds the lines that ReadLine returned, too.
  Outcome Wait();

 private:
  bool ReadMore();

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;  // a file without a name: it cannot fill up as a pipe does
  std::string text_;
  size_t line_start_ = 0;
  std::optional<Outcome> outcome_;
};

// privatemaild on a loopback port of its own.
class Daemon {
 public:
  // Waits until it listens, or has ended: see listening(). `program` may be another build of it.
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

// Whoever types `privatemail`: a server to talk to and a state folder.
struct User {
  std::vector<std::string> flags;  // --server and how to trust it
  std::string state;               // folder

  std::vector<std::string> CommandLine(const std::vector<std::string>& command) const;
  Outcome Run(const std::vector<std::string>& command) const;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_PROGRAMS_H_
