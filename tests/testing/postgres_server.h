// A temporary PostgreSQL server.
#ifndef PRIVATEMAIL_TESTS_TESTING_POSTGRES_SERVER_H_
#define PRIVATEMAIL_TESTS_TESTING_POSTGRES_SERVER_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/testing/temporary_folder.h"

namespace privatemail {

// The packaged server (/usr/lib/postgresql/*/bin) on a new cluster in a temporary folder.
//   Listens on: a Unix socket in the folder, and a free loopback port
//   Settings:   fsync on, password authentication
//   User:       the caller, but `postgres` or `nobody` for root, as which PostgreSQL does not run
//   Lifetime:   stopped by the destructor, or by the kernel if the test dies first
// Aborts if the server cannot be started.
class PostgresServer {
 public:
  PostgresServer();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Launches the server and waits until it answers.
  void Start(const std::vector<std::string>& flags = {});
  // Kills the server and its sessions with SIGKILL and waits for their end.
  void Kill();
  // Stops the server and its sessions, which then accept connections and never answer, until
  // Resume.
  void Suspend();
  void Resume();

  // Creates an empty database; returns its libpq connection string, over TCP or the socket.
  std::string NewDatabase();
  std::string NewDatabaseOverSocket();
  // Part of the connection strings; must not appear in any output.
  static constexpr char kPassword[] = "Swordfish-0815";

  // Runs SQL and returns the first value of the result, "" if it has none. Aborts on an error.
  static std::string Ask(const std::string& conninfo, const std::string& sql);
  // Ends connections that listen to the database and refuses new ones, until AllowConnections.
  static void RefuseListeners(const std::string& conninfo);
  static void AllowConnections(const std::string& conninfo);

 private:
  std::string Conninfo(const std::string& host, const std::string& database) const;
  void RunAndWait(const std::vector<std::string>& command) const;
  pid_t Spawn(std::vector<std::string> command) const;
  bool Answers() const;
  void Reap();

  const TemporaryFolder folder_;
  std::string programs_;  // folder
  uid_t user_ = 0;        // 0: the current user
  gid_t group_ = 0;
  int port_ = 0;
  pid_t pid_ = -1;
  int databases_ = 0;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_POSTGRES_SERVER_H_
