#include "server/daemon/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/daemon/listen_check.h"
#include "server/daemon/process_memory.h"
#include "server/services/header_check.h"
#include "server/services/log.h"
#include "server/store/postgres/postgres_store.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail::server {
namespace {

constexpr int kMaxStreamsPerConnection = 100;
constexpr int kHandshakeMilliseconds = 10'000;
constexpr int kKeepaliveMilliseconds = 60'000;
constexpr int kMinPingIntervalMilliseconds = 10'000;

// Removes reflection, which linking the library enables for every server of the program.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->erase(std::remove_if(plugins->begin(), plugins->end(),
                                  [](const std::unique_ptr<grpc::ServerBuilderPlugin>& plugin) {
                                    return absl::StrContains(plugin->name(), "reflection");
                                  }),
                   plugins->end());
  }
};

void SetArguments(const Limits& limits, grpc::ServerBuilder* builder) {
  // Compressed messages would grow before any limit is checked.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                              static_cast<int>(1000 * limits.connection_idle_seconds));
  // Two daemons must not share a port.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Detects callers whose machine is gone.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kHandshakeMilliseconds);
  // Clients send keepalive pings as well, also without a running call
  // (client/transport/channel.cc).
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kMinPingIntervalMilliseconds);
  // gRPC receives whole messages before it hands over anything, the key included; beyond the quota
  // it resets calls.
  grpc::ResourceQuota quota("messages");
  quota.Resize(static_cast<size_t>(limits.max_transport_memory));
  builder->SetResourceQuota(quota);
  builder->SetMaxReceiveMessageSize(static_cast<int>(limits.max_message_bytes));
  builder->SetMaxSendMessageSize(static_cast<int>(MaxSentMessageBytes(limits)));
}

absl::StatusOr<std::optional<TlsIdentity>> PrepareIdentity(const DaemonOptions& options) {
  if (options.insecure) return std::nullopt;
  if (options.tls_certificate.empty()) {
    // Absolute, because it is printed for clients in other directories.
    return LoadOrCreateIdentity(std::filesystem::absolute(options.data_directory) / "tls");
  }
  return LoadIdentity(options.tls_certificate, options.tls_key);
}

std::string AdminKeyPath(const DaemonOptions& options) {
  // Absolute, because it is printed for clients in other directories.
  return std::filesystem::absolute(options.data_directory) / "admin.key";
}

// Null: keys are off.
absl::StatusOr<std::unique_ptr<KeyRing>> OpenKeys(const DaemonOptions& options) {
  if (options.insecure) return nullptr;
  return KeyRing::Open(KeyFile(absl::StrCat(options.data_directory, "/keys")),
                       AdminKeyPath(options));
}

// Null: no audit log.
absl::StatusOr<std::unique_ptr<AuditLog>> OpenAuditLog(const DaemonOptions& options) {
  const std::string path = AuditLogPath(options);
  if (path.empty()) return nullptr;
  return AuditLog::Open(path, options.audit_max_bytes);
}

// Null: TLS is off.
absl::StatusOr<std::unique_ptr<ReloadableTls>> PrepareTls(const DaemonOptions& options) {
  PM_ASSIGN_OR_RETURN(std::optional<TlsIdentity> identity, PrepareIdentity(options));
  if (!identity) return nullptr;
  return ReloadableTls::Start(*std::move(identity), options.client_ca);
}

// Sets *lock, the lock of the data directory, unless the store holds it.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const DaemonOptions& options,
                                                 std::optional<DirectoryLock>* lock) {
  PM_ASSIGN_OR_RETURN(const StoreKind kind, ParseStoreKind(options.store));
  if (kind == StoreKind::kSqlite) return SqliteStore::Open(options.data_directory);
  PM_ASSIGN_OR_RETURN(const std::string conninfo,
                      ReadFile("--postgres-file", options.postgres_file));
  PM_ASSIGN_OR_RETURN(DirectoryLock acquired, DirectoryLock::Acquire(options.data_directory));
  lock->emplace(std::move(acquired));
  postgres::PoolOptions pool;
  pool.size = static_cast<int>(options.postgres_connections);
  return PostgresStore::Open(conninfo, pool);
}

// Checks everything possible before the data directory is created: a first start that failed later
// would leave an admin key that was never announced.
absl::Status CheckBeforeCreating(const DaemonOptions& options, const ListenAddress& address) {
  if (options.http.empty()) return CheckCanListen({address});
  ListenAddress http;
  PM_ASSIGN_OR_RETURN(static_cast<HostPort&>(http), ParseHttpAddress(options.http));
  return CheckCanListen({address, http});
}

void LogRefresh(const absl::Status& status) {
  if (status.ok()) {
    Log(LogLevel::kInfo, "changes of other daemons are followed again");
  } else {
    Log(LogLevel::kWarning,
        absl::StrCat("changes of other daemons cannot be followed, trying again: ",
                     status.message()));
  }
}

void LogWarning(const std::string& message) { Log(LogLevel::kWarning, message); }

void LogReadOnly(const absl::Status& status) {
  if (status.ok()) {
    Log(LogLevel::kInfo, "there is space again: the store takes writes");
  } else {
    Log(LogLevel::kError,
        absl::StrCat("read-only until there is space, searches are served: ", status.message()));
  }
}

}  // namespace

RebuildOptions ToAutomaticBuildOptions(const DaemonOptions& options) {
  return {options.auto_build_share, absl::Seconds(options.auto_build_quiet_seconds),
          options.limits.max_build_memory};
}

CatalogOptions ToCatalogOptions(const DaemonOptions& options) {
  const int64_t resident = options.limits.max_resident_memory;
  return {options.limits.max_build_memory, resident > 0 ? resident : AvailableMemory() / 4 * 3};
}

DaemonServer::DaemonServer(const DaemonOptions& options, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      admission_(options.limits),
      metrics_(parts_.catalog.get(), &admission_),
      dispatcher_({parts_.keys.get(), parts_.audit.get(), &admission_, &metrics_,
                   ParseIpAddresses("--trusted-proxies", options.trusted_proxies).value()},
                  options.limits),
      retrieval_(parts_.catalog.get(), &dispatcher_),
      encrypted_(parts_.catalog.get(), &dispatcher_, &metrics_),
      collections_(parts_.catalog.get(), &dispatcher_),
      key_service_(parts_.keys.get(), &dispatcher_),
      health_(parts_.catalog.get(), &dispatcher_),
      maintenance_(parts_.catalog.get(), ToAutomaticBuildOptions(options), MaintenanceHooks()) {
  if (parts_.tls != nullptr) metrics_.SetCertificateExpiry(parts_.tls->identity().not_after);
}

DaemonServer::~DaemonServer() { Drain(absl::ZeroDuration()); }

std::string DaemonServer::admin_key_path() const {
  if (parts_.keys == nullptr) return "";
  const std::string path = AdminKeyPath(options());
  return std::filesystem::exists(path) ? path : "";
}

Maintenance::Hooks DaemonServer::MaintenanceHooks() {
  return {.check =
              [this](const CollectionView& view) {
                return CheckLimit("memory of this build in bytes",
                                  view.build_memory(CollectionView::Features::kInFile),
                                  this->options().limits.max_build_memory, "max_build_memory");
              },
          .progress = [this](const std::string& name,
                             double done) { metrics_.SetBuildProgress(name, done); },
          .ended =
              [this](const std::string& name, const absl::Status& outcome) {
                metrics_.EndBuild(name);
                if (outcome.ok()) {
                  Log(LogLevel::kInfo, "built after changes", {{"collection", name}});
                } else if (!absl::IsCancelled(outcome)) {
                  Log(LogLevel::kWarning,
                      absl::StrCat("the build after changes failed, the former embedding stays: ",
                                   outcome.message()),
                      {{"collection", name}});
                }
              },
          .read_only = LogReadOnly};
}

absl::StatusOr<std::unique_ptr<DaemonServer>> DaemonServer::Start(const DaemonOptions& options) {
  PM_RETURN_IF_ERROR(Validate(options));
  Parts parts;
  PM_ASSIGN_OR_RETURN(parts.address, ParseListenAddress(options.listen));
  PM_RETURN_IF_ERROR(CheckBeforeCreating(options, parts.address));
  // The store first: it creates and locks the data directory, so that only one daemon creates
  // certificates and keys.
  PM_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenStore(options, &parts.lock));
  PM_ASSIGN_OR_RETURN(parts.tls, PrepareTls(options));
  PM_ASSIGN_OR_RETURN(parts.catalog,
                      Catalog::Open(std::move(store), options.data_directory, LogRefresh,
                                    ToCatalogOptions(options), LogWarning));
  for (const std::string& problem : parts.catalog->problems()) Log(LogLevel::kError, problem);
  PM_ASSIGN_OR_RETURN(parts.keys, OpenKeys(options));
  PM_ASSIGN_OR_RETURN(parts.audit, OpenAuditLog(options));
  auto daemon = std::unique_ptr<DaemonServer>(new DaemonServer(options, std::move(parts)));
  PM_RETURN_IF_ERROR(daemon->Listen(options));
  PM_RETURN_IF_ERROR(daemon->StartHttp(options));
  daemon->Audit("start");
  return daemon;
}

absl::Status DaemonServer::StartHttp(const DaemonOptions& options) {
  if (options.http.empty()) return absl::OkStatus();
  PM_ASSIGN_OR_RETURN(http_,
                      HttpServer::Start(options.http, {[this] { return !health_.draining(); },
                                                       [this] { return metrics_.Text(); }}));
  return absl::OkStatus();
}

absl::Status DaemonServer::Listen(const DaemonOptions& options) {
  grpc::EnableDefaultHealthCheckService(false);  // it knows no keys
  grpc::ServerBuilder builder;
  SetArguments(options.limits, &builder);
  // Forces the linker to keep the library.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
  builder.RegisterService(&retrieval_);
  builder.RegisterService(&encrypted_);
  builder.RegisterService(&collections_);
  builder.RegisterService(&key_service_);
  builder.RegisterService(&health_);
  builder.AddListeningPort(parts_.address.ToString(), MakeCredentials(options),
                           &parts_.address.port);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || parts_.address.port == 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", options.listen));
  }
  return absl::OkStatus();
}

std::shared_ptr<grpc::ServerCredentials> DaemonServer::MakeCredentials(
    const DaemonOptions& options) {
  if (parts_.tls == nullptr) return grpc::InsecureServerCredentials();
  std::shared_ptr<grpc::ServerCredentials> credentials = parts_.tls->Credentials();
  if (!options.trusted_proxies.empty()) {
    credentials->SetAuthMetadataProcessor(std::make_shared<HeaderCheck>(&dispatcher_));
  }
  return credentials;
}

void DaemonServer::Drain(absl::Duration grace) {
  if (server_ == nullptr) return;
  health_.Drain();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();
  server_.reset();
  Audit("stop");
}

}  // namespace privatemail::server
