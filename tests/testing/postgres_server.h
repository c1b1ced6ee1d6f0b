// A PostgreSQL server of one test program.
#ifndef PRIVATEMAIL_TESTS_TESTING_POSTGRES_SERVER_H_
#define PRIVATEMAIL_TESTS_TESTING_POSTGRES_SERVER_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/testing/temporary_folder.h"

namespace privatemail {

// The packaged server (/usr/lib/postgresql/*/bin) with a cluster of its own in a temporary folder,
// on a Unix socket there and on a loopback port that was free; fsync on, everyone needs the
// password. PostgreSQL refuses to run as root, so root starts it as `postgres` or `nobody`. Stopped
// at the end of its scope, and by the kernel should the test die first. Aborts when it cannot be
// had: tests of the store mean nothing without it.
class PostgresServer {
 public:
  PostgresServer();
  // With flags for initdb. Not started.
  explicit PostgresServer(const std::vector<std::string>& initdb_flags);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Waits until it answers.
  void Start(const std::vector<std::string>& flags = {});
  // Start in two steps, with more variables (NAME=VALUE) in its environment. A server that has
  // ended by itself is launched again.
  void Launch(const std::vector<std::string>& flags,
              const std::vector<std::string>& environment = {});
  void AwaitAnswer();
  // SIGKILL, as if it had crashed; gone when it returns.
  void Kill();
  // Of the first process, for signals.
  pid_t pid() const { return pid_; }
  // Where its files are.
  std::string data_folder() const { return folder_ / "data"; }

  // Makes an empty database; returns how to reach it over the loopback address or the socket.
  std::string NewDatabase();
  std::string NewDatabaseOverSocket();
  // What is part of those and must show nowhere.
  static constexpr char kPassword[] = "Swordfish-0815";

  // Runs SQL and returns the first value of the answer. An empty text when there is none.
  static std::string Ask(const std::string& conninfo, const std::string& sql);

 private:
  std::string Conninfo(const std::string& host, const std::string& database) const;
  void RunAndWait(const std::vector<std::string>& command) const;
  pid_t Spawn(std::vector<std::string> command, std::vector<std::string> environment = {}) const;
  bool Answers() const;
  int Reap();

  const TemporaryFolder folder_;
  std::string programs_;  // folder
  uid_t user_ = 0;        // 0: whoever runs the test
  gid_t group_ = 0;
  int port_ = 0;
  std::vector<std::string> command_;      // of the last start
  std::vector<std::string> environment_;  // beside the test's own
  pid_t pid_ = -1;
  int databases_ = 0;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_POSTGRES_SERVER_H_
