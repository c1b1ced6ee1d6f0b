#include "tests/testing/postgres_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "tests/testing/wait_until.h"

namespace privatemail {
namespace {

[[noreturn]] void GiveUp(const std::string& reason) {
  std::cerr << "no PostgreSQL server for this test: " << reason << std::endl;
  std::abort();
}

// The newest of the packaged versions.
std::string FindPrograms() {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", none)) {
    if (std::filesystem::exists(version.path() / "bin" / "postgres")) {
      found.push_back((version.path() / "bin").string());
    }
  }
  if (found.empty()) GiveUp("the package postgresql is not installed (deploy/setup.sh)");
  return *std::max_element(found.begin(), found.end());
}

int FreePort() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(probe, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    GiveUp("no free port");
  }
  ::close(probe);
  return ntohs(address.sin_port);
}

std::vector<pid_t> ChildrenOf(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream list("/proc/" + id + "/task/" + id + "/children");
  if (!list) GiveUp("the kernel does not list a process's children");
  return {std::istream_iterator<pid_t>(list), std::istream_iterator<pid_t>()};
}

// A connection string to another database of the same server, and the name of this one.
std::pair<std::string, std::string> SplitDatabase(const std::string& conninfo) {
  const size_t name_at = conninfo.find("dbname=") + 7;
  return {conninfo.substr(0, name_at) + "postgres", conninfo.substr(name_at)};
}

}  // namespace

PostgresServer::PostgresServer() : programs_(FindPrograms()), port_(FreePort()) {
  if (::geteuid() == 0) {
    const passwd* account = ::getpwnam("postgres");
    if (account == nullptr) account = ::getpwnam("nobody");
    if (account == nullptr) GiveUp("root may not run it, and there is neither postgres nor nobody");
    user_ = account->pw_uid;
    group_ = account->pw_gid;
    if (::chown(folder_.path().c_str(), user_, group_) != 0) GiveUp("chown");
  }
  const std::string password = folder_.Write("password", std::string(kPassword) + "\n");
  ::chmod(password.c_str(), 0644);  // in a folder that is the server's alone
  RunAndWait({programs_ + "/initdb", "--no-sync", "--encoding=UTF8", "--locale=C",
              "--auth=scram-sha-256", "--username=tester", "--pwfile=" + password, "-D",
              folder_ / "data"});
  Start();
}

PostgresServer::~PostgresServer() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGQUIT);
  Reap();
}

// Only calls that are safe between fork and exec.
pid_t PostgresServer::Spawn(std::vector<std::string> command) const {
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const std::string log = folder_ / "log";
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (user_ != 0 && (::setgroups(0, nullptr) != 0 || ::setgid(group_) != 0 || ::setuid(user_) != 0))
    ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  ::dup2(out, 1);
  ::dup2(out, 2);
  if (::chdir("/") == 0) ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

void PostgresServer::RunAndWait(const std::vector<std::string>& command) const {
  const pid_t child = Spawn(command);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status == 0) return;
  std::ifstream log(folder_ / "log");
  std::cerr << log.rdbuf();
  GiveUp(command[0] + " failed");
}

bool PostgresServer::Answers() const {
  const std::string conninfo = Conninfo("127.0.0.1", "postgres");
  PGconn* connection = PQconnectdb(conninfo.c_str());
  const bool answers = PQstatus(connection) == CONNECTION_OK;
  PQfinish(connection);
  return answers;
}

void PostgresServer::Start(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {programs_ + "/postgres", "-D", folder_ / "data"};
  for (const std::string& setting :
       {std::string("listen_addresses=127.0.0.1"), "port=" + std::to_string(port_),
        "unix_socket_directories=" + folder_.path(), std::string("max_connections=100"),
        std::string("fsync=on")}) {
    command.insert(command.end(), {"-c", setting});
  }
  command.insert(command.end(), flags.begin(), flags.end());
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // the sessions of a server that dies become our children
  pid_ = Spawn(command);
  const bool answers = WaitUntil([&] {
    // The start fails while children of a killed server hold its shared memory.
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = Spawn(command);
    return Answers();
  });
  if (!answers) GiveUp("it does not answer");
}

void PostgresServer::Reap() {
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

// Sessions outlive a postmaster until they notice, and may answer until then; a machine that loses
// its power takes all of them at once, and so does this.
void PostgresServer::Kill() {
  ::kill(pid_, SIGSTOP);  // it starts no session from here on
  const std::vector<pid_t> sessions = ChildrenOf(pid_);
  for (const pid_t session : sessions) ::kill(session, SIGKILL);
  ::kill(pid_, SIGKILL);
  Reap();
  for (const pid_t session : sessions) ::waitpid(session, nullptr, 0);  // ours since Start
}

void PostgresServer::Suspend() {
  ::kill(pid_, SIGSTOP);  // it starts no session from here on
  for (const pid_t session : ChildrenOf(pid_)) ::kill(session, SIGSTOP);
}

void PostgresServer::Resume() {
  for (const pid_t session : ChildrenOf(pid_)) ::kill(session, SIGCONT);
  ::kill(pid_, SIGCONT);
}

std::string PostgresServer::Conninfo(const std::string& host, const std::string& database) const {
  return "host=" + host + " port=" + std::to_string(port_) + " user=tester password=" + kPassword +
         " dbname=" + database;
}

std::string PostgresServer::NewDatabase() {
  const std::string name = "test" + std::to_string(++databases_);
  Ask(Conninfo("127.0.0.1", "postgres"), "CREATE DATABASE " + name);
  return Conninfo("127.0.0.1", name);
}

std::string PostgresServer::NewDatabaseOverSocket() {
  NewDatabase();
  return Conninfo(folder_.path(), "test" + std::to_string(databases_));
}

std::string PostgresServer::Ask(const std::string& conninfo, const std::string& sql) {
  PGconn* connection = PQconnectdb(conninfo.c_str());
  PGresult* result = PQexec(connection, sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    GiveUp(sql + ": " + PQerrorMessage(connection));
  }
  std::string value;
  if (PQntuples(result) > 0 && PQnfields(result) > 0) value = PQgetvalue(result, 0, 0);
  PQclear(result);
  PQfinish(connection);
  return value;
}

void PostgresServer::RefuseListeners(const std::string& conninfo) {
  const auto [elsewhere, database] = SplitDatabase(conninfo);
  Ask(elsewhere, "ALTER DATABASE " + database + " ALLOW_CONNECTIONS false");
  Ask(elsewhere,
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' "
      "AND datname = '" +
          database + "'");
}

void PostgresServer::AllowConnections(const std::string& conninfo) {
  const auto [elsewhere, database] = SplitDatabase(conninfo);
  Ask(elsewhere, "ALTER DATABASE " + database + " ALLOW_CONNECTIONS true");
}

}  // namespace privatemail
