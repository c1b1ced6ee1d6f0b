#include "server/daemon/program.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/core_dumps.h"
#include "common/base/printable.h"
#include "common/base/process_memory.h"
#include "common/base/short_help.h"
#include "common/rpc/host_port.h"
#include "server/config/settings.h"
#include "server/daemon/command_line.h"
#include "server/daemon/file_check.h"
#include "server/daemon/server.h"
#include "server/services/log.h"

namespace privatemail::server {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;  // INVALID_ARGUMENT: a restart would not help

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return 0;
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailure;
}

// Never an error in our log: gRPC's messages are for its developers, and the daemon logs failures
// itself.
void LogFromGrpc(gpr_log_func_args* line) {
  Log(line->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kInfo,
      absl::StrCat("grpc: ", line->message));
}

// At debug level: protobuf complains about peer input of any length, at any rate.
void LogFromProtobuf(google::protobuf::LogLevel level, const char* /*file*/, int /*line*/,
                     const std::string& message) {
  constexpr size_t kMaxBytes = 300;
  Log(level == google::protobuf::LOGLEVEL_FATAL ? LogLevel::kError : LogLevel::kDebug,
      absl::StrCat("protobuf: ", TruncateUtf8(message, kMaxBytes)));
}

std::string Date(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone());
}

// Prints what the person or script that started the daemon needs, to stdout.
void PrintAnnouncement(const DaemonServer& server) {
  if (const auto& identity = server.identity(); identity) {
    std::printf("certificate: %s (%s, valid until %s)\n", identity->certificate_path.c_str(),
                identity->created ? "self-signed, made now" : "found",
                Date(identity->not_after).c_str());
    std::printf("trust this server with: --trust %s\n", identity->fingerprint.c_str());
    std::printf("or with: --ca %s\n", identity->certificate_path.c_str());
  } else {
    std::printf("no TLS: reach this server with --insecure\n");
  }
  if (const std::string path = server.admin_key_path(); !path.empty()) {
    std::printf("admin key, made %s: %s\n",
                server.created_admin_key() ? "now" : "by the first start", path.c_str());
    std::printf("show it to this server with: --key-file %s\n", path.c_str());
  }
  if (const std::string address = server.http_address(); !address.empty()) {
    std::printf("metrics and probes: http://%s/metrics, /livez, /readyz\n", address.c_str());
  }
  if (const std::string address = server.gateway_address(); !address.empty()) {
    std::printf("RPCs over HTTP: http://%s\n", address.c_str());
  }
  std::printf("listening on %s\n", server.address().ToString().c_str());
  std::fflush(stdout);
}

void WarnAboutTls(const DaemonServer& server) {
  if (!server.identity()) {
    Log(LogLevel::kWarning,
        "TLS is off (--insecure): everyone on this machine can read and change the traffic, and "
        "needs no key; only loopback connections are accepted");
  } else if (server.identity()->not_after < absl::Now()) {
    Log(LogLevel::kWarning,
        absl::StrCat("certificate ", server.identity()->certificate_path, " expired on ",
                     Date(server.identity()->not_after), " by this machine's clock (",
                     Date(absl::Now()), "): clients with --ca will refuse it; ",
                     server.identity()->remedy));
  }
}

void WarnAboutProxies(const DaemonServer& server) {
  if (IsLoopback(server.address().host) || !server.options().trusted_proxies.empty()) return;
  Log(LogLevel::kWarning,
      "listening beyond loopback without trusted_proxies: floods of connections and of headers are "
      "limited only by a proxy before this daemon (deploy/nginx)");
}

// gRPC accepts no connection any more once the process has had no file left for one.
void RaiseOpenFileLimit() {
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

void WarnAboutFilePermissions(const CommandLine& command_line, const DaemonOptions& options,
                              const std::string& tls_key) {
  for (const std::string& warning :
       CheckFilePermissions(options, command_line.config_file, tls_key)) {
    Log(LogLevel::kWarning, warning);
  }
}

pthread_t serving_thread;

// Makes the calling thread the one that receives these signals: the handler of the others, which
// may have started before, forwards them.
void Receive(std::initializer_list<int> signals) {
  serving_thread = pthread_self();
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    sigaddset(&set, signal);
    std::signal(signal, [](int number) { pthread_kill(serving_thread, number); });
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// SIGTERM and SIGINT end a process that starts at once: it has acknowledged nothing yet.
void PrepareSignals() {
  Receive({SIGHUP});
  // The reader of the log may exit.
  std::signal(SIGPIPE, SIG_IGN);
  // Makes a write beyond ulimit -f fail like one to a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
}

void Reload(const CommandLine& command_line, DaemonServer* server) {
  const absl::StatusOr<DaemonOptions> updated = command_line.EffectiveOptions();
  if (updated.ok()) {
    Log(LogLevel::kInfo, "reload: SIGHUP");
    return server->Reload(*updated);
  }
  // Log rotation and key revocation must work even if the settings are wrong.
  Log(LogLevel::kError,
      absl::StrCat("reload: ", updated.status().message(),
                   "; all settings stay as they were, keys, certificates and audit log are read "
                   "again"));
  server->ReloadFiles();
}

// Returns after SIGTERM or SIGINT.
void Serve(const CommandLine& command_line, DaemonServer* server) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  constexpr timespec kMemoryInterval = {.tv_sec = 5, .tv_nsec = 0};
  constexpr std::chrono::seconds kCertificateInterval(60);
  auto refreshed = std::chrono::steady_clock::now();
  while (true) {
    const int signal = sigtimedwait(&signals, nullptr, &kMemoryInterval);
    if (signal == SIGHUP) {
      Reload(command_line, server);
    } else if (signal > 0) {
      const double grace = server->options().drain_seconds;
      // A second signal kills the process; acknowledged writes are on disk.
      for (const int end : {SIGTERM, SIGINT}) std::signal(end, SIG_DFL);
      sigset_t ends = signals;
      sigdelset(&ends, SIGHUP);
      pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
      Log(LogLevel::kInfo,
          absl::StrCat("signal ", signal, ": waiting up to ", grace, " s for calls under way"));
      server->Drain(absl::Seconds(grace));
      return;
    } else {
      ReturnFreeMemory();
      const auto now = std::chrono::steady_clock::now();
      if (now - refreshed < kCertificateInterval) continue;
      refreshed = now;
      server->RefreshCertificates();
    }
  }
}

int Run(const CommandLine& command_line, const DaemonOptions& options) {
  BoundKeptMemory();
  RaiseOpenFileLimit();
  PrepareSignals();
  // Debian's Abseil checks every lock of gRPC for deadlocks, which costs some percent of a search.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  absl::StatusOr<std::unique_ptr<DaemonServer>> server = DaemonServer::Start(options);
  if (!server.ok()) {
    Log(LogLevel::kError, server.status().message());
    return ExitCodeOf(server.status());
  }
  Receive({SIGTERM, SIGINT});  // before the announcement that it listens
  WarnAboutTls(**server);
  WarnAboutProxies(**server);
  WarnAboutFilePermissions(command_line, options,
                           (*server)->identity() ? (*server)->identity()->key_path : "");
  PrintAnnouncement(**server);
  Log(LogLevel::kInfo,
      absl::StrCat("privatemaild " PRIVATEMAIL_VERSION " listening on ",
                   (*server)->address().ToString(), ", data directory ", options.data_directory));
  Serve(command_line, server->get());
  Log(LogLevel::kInfo, "stopped");
  return 0;
}

// Logs one line per problem, or prints the effective configuration.
int CheckConfig(const CommandLine& command_line) {
  const CommandLine::ReadResult result = command_line.Read();
  const DaemonOptions& options = result.options;
  Problems problems = result.problems;
  // Without its file the configuration is incomplete, and further problems would be spurious.
  if (result.file_is_read) {
    ApplyLogSettings(options);
    WarnAboutFilePermissions(command_line, options, options.tls_key);
    problems.Add(CheckOptions(options));
    problems.Add(CheckFiles(options));
  }
  for (const absl::Status& problem : problems.all()) Log(LogLevel::kError, problem.message());
  if (!problems.all().empty()) return ExitCodeOf(problems.status());
  std::fputs(PrintConfig(options).c_str(), stdout);
  return 0;
}

int Main(int argc, char** argv) {
  ::umask(077);
  CLI::App app("privatemaild serves the collections of one store", "privatemaild");
  app.set_version_flag("--version", "privatemaild " PRIVATEMAIL_VERSION);
  CommandLine command_line;
  command_line.AddFlags(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    if (!WantsAllOptions(argc, argv)) app.formatter(std::make_shared<ShortFormatter>());
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const std::string unknown = command_line.UnknownWord(app);
    std::fprintf(stderr, "error: %s\n`privatemaild --help` says more.\n",
                 Printable(unknown.empty() ? error.what() : unknown).c_str());
    return kExitUsage;
  }
  gpr_set_log_function(LogFromGrpc);
  google::protobuf::SetLogHandler(LogFromProtobuf);
  if (command_line.check_config) return CheckConfig(command_line);
  const absl::StatusOr<DaemonOptions> options = command_line.EffectiveOptions();
  if (!options.ok()) {
    Log(LogLevel::kError, options.status().message());
    return ExitCodeOf(options.status());
  }
  ApplyLogSettings(*options);
  return Run(command_line, *options);
}

}  // namespace

int RunProgram(int argc, char** argv) {
  DisableCoreDumps();
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    // For instance out of memory while a gallery is loaded.
    std::fprintf(stderr, "privatemaild: %s\n", error.what());
    return kExitFailure;
  }
}

}  // namespace privatemail::server
