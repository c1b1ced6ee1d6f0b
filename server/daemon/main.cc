// privatemaild: serves the collections of one store.
#include <grpc/support/log.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/daemon/options.h"
#include "server/daemon/server.h"
#include "server/services/log.h"

namespace privatemail {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr absl::Duration kGrace = absl::Seconds(10);

// What gRPC has to say goes into the daemon's log, in its format.
void LogFromGrpc(gpr_log_func_args* line) {
  // Its messages name source files of its own and are for its developers: an operator's reasons are
  // in the daemon's own lines.
  Log(line->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kInfo,
      absl::StrCat("grpc: ", line->message));
}

void AddFlags(CLI::App* app, DaemonOptions* options) {
  app->add_option(
         "--data-dir", options->data_directory,
         "Directory of the collections and of a self-signed certificate; made if it is not "
         "there")
      ->required();
  app->add_option("--store", options->store,
                  "Where collections are kept: sqlite (in DATA-DIR) or postgres (PostgreSQL 15 or "
                  "later, which several daemons may share, each with a DATA-DIR of its own)")
      ->capture_default_str();
  app->add_option("--postgres-file", options->postgres_file,
                  "File with the libpq connection string of --store postgres (\"host=... user=... "
                  "password=... dbname=...\"), readable by you alone");
  app->add_option("--postgres-connections", options->postgres_connections,
                  "Connections to PostgreSQL at most, beside one that listens")
      ->capture_default_str();
  app->add_option("--listen", options->listen, "HOST:PORT; port 0 picks a free one")
      ->capture_default_str();
  app->add_option("--tls-cert", options->tls_certificate,
                  "PEM certificate; without it a self-signed one is kept under DATA-DIR/tls");
  app->add_option("--tls-key", options->tls_key, "PEM private key of --tls-cert");
  app->add_option("--client-ca", options->client_ca,
                  "PEM authorities: demand a client certificate that one of them signed");
  app->add_flag("--insecure", options->insecure, "No TLS; loopback addresses only");
  app->add_flag("--reflection", options->reflection, "Let anyone list services and messages");
  app->add_option("--max-threads", options->max_threads,
                  "Threads that serve calls, each holding one; calls beyond are refused")
      ->capture_default_str();
  app->set_version_flag("--version", "privatemaild " PRIVATEMAIL_VERSION);
}

std::string Date(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone());
}

// What a person or a script that started the daemon needs to know, on stdout.
void Announce(const DaemonServer& server) {
  if (const auto& identity = server.identity(); identity) {
    std::printf("certificate: %s (%s, valid until %s)\n", identity->certificate_path.c_str(),
                identity->made_now ? "self-signed, made now" : "found",
                Date(identity->not_after).c_str());
    std::printf("trust this server with: --trust %s\n", identity->fingerprint.c_str());
    std::printf("or with: --ca %s\n", identity->certificate_path.c_str());
  } else {
    std::printf("no TLS: reach this server with --insecure\n");
  }
  std::printf("listening on %s\n", server.address().ToString().c_str());
  std::fflush(stdout);
}

void WarnAboutTls(const DaemonServer& server) {
  if (!server.identity()) {
    Log(LogLevel::kWarning,
        "TLS is off (--insecure): everyone on this machine can read and change the traffic; only "
        "loopback connections are accepted");
  } else if (server.identity()->not_after < absl::Now()) {
    Log(LogLevel::kWarning,
        absl::StrCat("certificate ", server.identity()->certificate_path, " expired on ",
                     Date(server.identity()->not_after), ": clients will refuse it"));
  }
}

bool OpenToOthers(const std::string& path) {
  struct stat properties = {};
  return ::stat(path.c_str(), &properties) == 0 && (properties.st_mode & (S_IRWXG | S_IRWXO)) != 0;
}

// Not refused: who runs the daemon may have reasons, a backup's group for one.
void WarnAboutModes(const DaemonOptions& options, const DaemonServer& server) {
  if (OpenToOthers(options.data_directory)) {
    Log(LogLevel::kWarning, absl::StrCat("data directory ", options.data_directory,
                                         " is open to others: chmod 700 ", options.data_directory));
  }
  if (OpenToOthers(options.postgres_file)) {
    Log(LogLevel::kWarning,
        absl::StrCat("--postgres-file ", options.postgres_file,
                     " is open to others, who may read a password in it: chmod 600 ",
                     options.postgres_file));
  }
  const std::string key = server.identity() ? server.identity()->key_path : "";
  if (OpenToOthers(key)) {
    Log(LogLevel::kWarning,
        absl::StrCat("private key ", key,
                     " is open to others, who can stand in for this server: ", "chmod 600 ", key));
  }
}

int Run(const DaemonOptions& options) {
  // Blocked before any thread starts, so that only sigwait below ever receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  absl::StatusOr<std::unique_ptr<DaemonServer>> server = DaemonServer::Start(options);
  if (!server.ok()) {
    Log(LogLevel::kError, server.status().message());
    return kExitFailure;
  }
  WarnAboutTls(**server);
  WarnAboutModes(options, **server);
  Announce(**server);
  Log(LogLevel::kInfo,
      absl::StrCat("privatemaild " PRIVATEMAIL_VERSION " listening on ",
                   (*server)->address().ToString(), ", data directory ", options.data_directory));
  int signal = 0;
  sigwait(&signals, &signal);
  // A second signal ends the program at once; what was acknowledged is safe on disk.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  Log(LogLevel::kInfo, absl::StrCat("signal ", signal, ": waiting up to ",
                                    absl::ToInt64Seconds(kGrace), " s for calls under way"));
  (*server)->Drain(kGrace);
  Log(LogLevel::kInfo, "stopped");
  return 0;
}

int Main(int argc, char** argv) {
  ::umask(077);
  CLI::App app("privatemaild serves the collections of one store", "privatemaild");
  DaemonOptions options;
  AddFlags(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  gpr_set_log_function(LogFromGrpc);
  return Run(options);
}

}  // namespace
}  // namespace privatemail

int main(int argc, char** argv) {
  try {
    return privatemail::Main(argc, argv);
  } catch (const std::exception& error) {
    // Memory that runs out while a gallery is loaded, for one.
    std::fprintf(stderr, "privatemaild: %s\n", error.what());
    return privatemail::kExitFailure;
  }
}
