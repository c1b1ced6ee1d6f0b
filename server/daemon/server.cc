#include "server/daemon/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/config/settings.h"
#include "server/connect/gateway.h"
#include "server/connect/pages.h"
#include "server/services/log.h"
#include "server/services/services.h"
#include "server/store/directory_lock.h"
#include "server/store/postgres/postgres_store.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail::server {
namespace {

constexpr int kMaxStreamsPerConnection = 100;
constexpr int kConnectionIdleMilliseconds = 300'000;  // without a call
constexpr int kHandshakeMilliseconds = 10'000;
constexpr int kKeepaliveMilliseconds = 60'000;
constexpr int kMinPingIntervalMilliseconds = 10'000;

void SetArguments(const Limits& limits, grpc::ServerBuilder* builder) {
  // Compressed messages would grow before any limit is checked.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kConnectionIdleMilliseconds);
  // Two daemons must not share a port.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A call looks at its deadline itself. gRPC would send two outcomes of a call past it, and a
  // proxy could take the second one for that of the next call over the same connection.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
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

std::vector<std::string> NamesOf(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const CollectionView& view : catalog.List()) names.push_back(view.published->name);
  return names;
}

std::string AdminKeyPath(const DaemonOptions& options) {
  // Absolute, because it is printed for clients in other directories.
  return std::filesystem::absolute(options.data_directory) / "admin.key";
}

// Null: keys are off.
absl::StatusOr<std::unique_ptr<KeyRing>> OpenKeys(const DaemonOptions& options) {
  if (options.insecure || !options.shard.empty()) return nullptr;
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
  if (options.insecure) return nullptr;
  // Absolute, because it is printed for clients in other directories.
  const auto directory = std::filesystem::absolute(options.data_directory) / "tls";
  PM_ASSIGN_OR_RETURN(TlsIdentity identity,
                      options.tls_certificate.empty()
                          ? LoadOrCreateIdentity(directory)
                          : LoadIdentity(options.tls_certificate, options.tls_key));
  return ReloadableTls::Start(std::move(identity), options.client_ca);
}

static_assert(kMaxShards == kPartitions);
Shard ShardOf(const DaemonOptions& options) {
  if (options.shard.empty()) return {};
  const auto [number, of] = ParseShard(options.shard).value();
  return {number, of};
}

std::string NameOf(const Shard& shard) {
  return shard.of == 1 ? "" : absl::StrCat(shard.number, "/", shard.of);
}

// Sets *lock, the lock of the data directory, unless the store holds it.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const DaemonOptions& options,
                                                 std::optional<Descriptor>* lock) {
  if (options.postgres_file.empty()) return SqliteStore::Open(options.data_directory);
  PM_ASSIGN_OR_RETURN(const std::string conninfo,
                      ReadFile("--postgres-file", options.postgres_file));
  PM_ASSIGN_OR_RETURN(*lock, LockDirectory(options.data_directory));
  return PostgresStore::Open(conninfo, {}, ShardOf(options));
}

// A server's own certificate identifies the front, and those in its file are trusted: its
// authority, or one self-signed certificate of all.
std::shared_ptr<grpc::ChannelCredentials> ShardCredentials(const ReloadableTls* tls) {
  if (tls == nullptr) return grpc::InsecureChannelCredentials();
  const TlsIdentity identity = tls->identity();
  return grpc::SslCredentials({.pem_root_certs = identity.certificate_pem,
                               .pem_private_key = identity.key_pem,
                               .pem_cert_chain = identity.certificate_pem});
}

// Null: this is no front.
absl::StatusOr<std::unique_ptr<Shards>> ConnectShards(const DaemonOptions& options,
                                                      const ReloadableTls* tls) {
  if (options.shards.empty()) return nullptr;
  PM_ASSIGN_OR_RETURN(const auto addresses, ParseShards(options.shards));
  return std::make_unique<Shards>(addresses, ShardCredentials(tls));
}

// Checks everything possible before the data directory is created: a first start that failed later
// would leave an admin key that was never announced.
absl::Status CheckBeforeCreating(const DaemonOptions& options, const HostPort& address) {
  std::vector<FlaggedAddress> addresses = {{"--listen", address}};
  for (const auto& [flag, text] :
       {std::pair("--http", options.http), std::pair("--http-listen", options.http_listen)}) {
    if (text.empty()) continue;
    PM_ASSIGN_OR_RETURN(const HostPort page, ParseIpPort(flag, text));
    addresses.push_back({flag, page});
  }
  return CheckCanListen(addresses);
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

// Applies live settings and logs every difference.
void MergeLive(const DaemonOptions& updated, DaemonOptions* options) {
  for (const Setting& setting : Settings()) {
    const std::string before = setting.ValueIn(*options);
    const std::string after = setting.ValueIn(updated);
    if (before == after) continue;
    if (!setting.live) {
      Log(LogLevel::kWarning, absl::StrCat("reload: ", setting.key, " stays '", before,
                                           "' until a restart makes it '", after, "'"));
      continue;
    }
    Log(LogLevel::kInfo,
        absl::StrCat("reload: ", setting.key, " is now ", after, ", was ", before));
    // The value was validated when it was read.
    Assign(setting, setting.key, after, options).IgnoreError();
  }
  options->limits = updated.limits;  // with those that follow from the setting memory
}

void LogOutcome(const absl::Status& status, absl::string_view what, absl::string_view otherwise) {
  if (status.ok()) {
    Log(LogLevel::kInfo, absl::StrCat("reload: ", what));
  } else {
    Log(LogLevel::kError, absl::StrCat("reload: ", status.message(), "; ", otherwise));
  }
}

void ReloadKeys(KeyRing* keys) {
  const absl::StatusOr<std::vector<std::string>> revalidated = keys->Reload();
  LogOutcome(revalidated.status(), "keys read", "the former keys stay valid");
  if (!revalidated.ok()) return;
  for (const std::string& id : *revalidated) {
    Log(LogLevel::kError, absl::StrCat("reload: key ", id,
                                       " was revoked, but that could not be "
                                       "written, so that it is valid again: revoke it once more"));
  }
}

}  // namespace

RebuildOptions ToAutomaticBuildOptions(const DaemonOptions& options) {
  return {.share = options.shard.empty() ? options.auto_build_share : 0,  // it builds with others
          .memory = options.limits.max_build_memory};
}

CatalogOptions ToCatalogOptions(const DaemonOptions& options) {
  return {.cells_memory = options.limits.max_build_memory,
          .resident_memory = options.limits.max_resident_memory,
          .is_front = !options.shards.empty()};
}

DaemonServer::DaemonServer(const DaemonOptions& options, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      admission_(options.limits),
      metrics_(parts_.catalog.get(), &admission_),
      dispatcher_(
          parts_.keys.get(), parts_.audit.get(), &admission_, &metrics_, NameOf(ShardOf(options)),
          ParseIpAddresses("--trusted-proxies", options.trusted_proxies).value(),
          [catalog = parts_.catalog.get()] { return NamesOf(*catalog); }, options.limits),
      collections_(parts_.catalog.get(), &dispatcher_),
      health_(parts_.catalog.get(), parts_.shards.get(), &dispatcher_),
      maintenance_(parts_.catalog.get(), ToAutomaticBuildOptions(options), MaintenanceHooks()) {
  ServeRetrieval(parts_.catalog.get(), &dispatcher_);
  ServeEncrypted(parts_.catalog.get(), &dispatcher_);
  if (options.shard.empty()) ServeKeys(parts_.keys.get(), &dispatcher_);  // a shard knows none
  if (parts_.shards != nullptr) {
    ServeFront(parts_.catalog.get(), parts_.shards.get(), &dispatcher_);
  }
  if (parts_.tls != nullptr) metrics_.SetCertificateExpiry(parts_.tls->identity().not_after);
}

DaemonServer::~DaemonServer() { Drain(absl::ZeroDuration()); }

std::string DaemonServer::admin_key_path() const {
  if (parts_.keys == nullptr) return "";
  const std::string path = AdminKeyPath(options());
  return std::filesystem::exists(path) ? path : "";
}

Maintenance::Hooks DaemonServer::MaintenanceHooks() {
  Maintenance::Hooks hooks = {
      .check =
          [this](const CollectionView& view) {
            return CheckLimit("memory of this build in bytes",
                              view.build_memory(CollectionView::Features::kInFile),
                              this->options().limits.max_build_memory, "memory / 4");
          },
      .ended =
          [](const std::string& name, const absl::Status& outcome) {
            if (outcome.ok()) {
              Log(LogLevel::kInfo, "built after changes", {{"collection", name}});
            } else if (!absl::IsCancelled(outcome) &&
                       !absl::IsAborted(outcome)) {  // another builds
              Log(LogLevel::kWarning,
                  absl::StrCat("the build after changes failed, the former embedding stays: ",
                               outcome.message()),
                  {{"collection", name}});
            }
          },
      .read_only = LogReadOnly};
  if (Shards* const shards = parts_.shards.get(); shards != nullptr) {
    hooks.check = [](const CollectionView& /*view*/) { return absl::OkStatus(); };  // shards do
    hooks.embedded = [shards](const auto& cancelled) {
      return EmbeddedByShards(shards, cancelled);
    };
    hooks.build = [this, shards](const std::string& name, const auto& cancelled) {
      return BuildShards(parts_.catalog.get(), shards, name, cancelled);
    };
  }
  return hooks;
}

absl::StatusOr<std::unique_ptr<DaemonServer>> DaemonServer::Start(const DaemonOptions& options) {
  PM_RETURN_IF_ERROR(CheckOptions(options).status());
  Parts parts;
  PM_ASSIGN_OR_RETURN(parts.address, ParseHostPort("--listen", options.listen));
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
  PM_ASSIGN_OR_RETURN(parts.shards, ConnectShards(options, parts.tls.get()));
  auto daemon = std::unique_ptr<DaemonServer>(new DaemonServer(options, std::move(parts)));
  PM_RETURN_IF_ERROR(daemon->Listen(options));
  if (!options.http.empty()) {
    DaemonServer& served = *daemon;
    PM_ASSIGN_OR_RETURN(const HostPort address, ParseIpPort("--http", options.http));
    PM_ASSIGN_OR_RETURN(
        served.http_,
        HttpServer::Start({.setting = "--http", .address = address},
                          ServePages({.ready = [&served] { return served.health_.ready(); },
                                      .metrics = [&served] { return served.metrics_.Text(); },
                                      .any_host = !IsLoopback(address.host)})));
  }
  PM_RETURN_IF_ERROR(daemon->ListenHttp(options));
  daemon->Audit("start");
  return daemon;
}

absl::Status DaemonServer::Listen(const DaemonOptions& options) {
  grpc::EnableDefaultHealthCheckService(false);  // it knows no keys
  grpc::ServerBuilder builder;
  SetArguments(options.limits, &builder);
  builder.RegisterCallbackGenericService(&dispatcher_);
  builder.AddListeningPort(
      parts_.address.ToString(),
      parts_.tls == nullptr ? grpc::InsecureServerCredentials() : parts_.tls->Credentials(),
      &parts_.address.port);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || parts_.address.port == 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", options.listen));
  }
  return absl::OkStatus();
}

absl::Status DaemonServer::ListenHttp(const DaemonOptions& options) {
  if (options.http_listen.empty()) return absl::OkStatus();
  grpc::ServerBuilder builder;
  SetArguments(options.limits, &builder);
  builder.RegisterCallbackGenericService(dispatcher_.for_gateway());
  gateway_server_ = builder.BuildAndStart();
  if (gateway_server_ == nullptr) {
    return absl::FailedPreconditionError("cannot serve RPCs over HTTP");
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // Keys must not travel in the clear but to this machine or from a proxy.
  PM_ASSIGN_OR_RETURN(
      gateway_,
      HttpServer::Start(
          {.setting = "--http-listen",
           .address = *ParseIpPort("--http-listen", options.http_listen),
           .peers = ParseIpAddresses("--trusted-proxies", options.trusted_proxies).value()},
          ServeRpcs(
              absl::StrSplit(options.allowed_origins, absl::ByAnyChar(", "), absl::SkipEmpty()),
              options.limits.max_message_bytes, gateway_server_->InProcessChannel(arguments))));
  return absl::OkStatus();
}

void DaemonServer::Drain(absl::Duration grace) {
  if (server_ == nullptr) return;
  health_.Drain();
  const absl::Time deadline = absl::Now() + grace;
  {
    // A store that hangs takes its time to be left, so that happens beside the calls.
    const std::jthread leaving([this] { parts_.catalog->StopFollowing(); });
    const std::jthread draining_gateway([this, deadline] {
      if (gateway_ == nullptr) return;
      gateway_->Drain(deadline);
      gateway_server_->Shutdown(std::chrono::system_clock::now());  // cancels the rest
      gateway_ = nullptr;
      gateway_server_ = nullptr;
    });
    server_->Shutdown(absl::ToChronoTime(deadline));
    server_->Wait();
    server_.reset();
  }
  Audit("stop");
}

void ApplyLogSettings(const DaemonOptions& options) {
  const LogLevel level = options.log_level == "debug"     ? LogLevel::kDebug
                         : options.log_level == "info"    ? LogLevel::kInfo
                         : options.log_level == "warning" ? LogLevel::kWarning
                                                          : LogLevel::kError;
  SetLog(level, options.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
}

void DaemonServer::Reload(const DaemonOptions& updated) {
  {
    const std::lock_guard<std::mutex> guard(options_mutex_);
    MergeLive(updated, &options_);
    ApplyLogSettings(options_);
    dispatcher_.SetLimits(options_.limits);
    maintenance_.SetOptions(ToAutomaticBuildOptions(options_));
    parts_.catalog->SetOptions(ToCatalogOptions(options_));
    if (parts_.audit != nullptr) parts_.audit->SetMaxBytes(options_.audit_max_bytes);
  }
  ReloadFiles();
}

void DaemonServer::ReloadFiles() {
  if (parts_.keys != nullptr) ReloadKeys(parts_.keys.get());
  if (parts_.audit != nullptr) {
    LogOutcome(parts_.audit->Reopen(), "audit log reopened", "it continues in the former file");
    Audit("reload");
  }
  RefreshCertificates();
}

void DaemonServer::RefreshCertificates() {
  if (parts_.tls == nullptr) return;
  const absl::StatusOr<bool> changed = parts_.tls->Refresh();
  if (!changed.ok()) {
    LogOutcome(changed.status(), "", "the former certificate stays in use");
  } else if (*changed) {
    const TlsIdentity identity = parts_.tls->identity();
    metrics_.SetCertificateExpiry(identity.not_after);
    if (parts_.shards != nullptr) parts_.shards->Connect(ShardCredentials(parts_.tls.get()));
    LogOutcome(absl::OkStatus(),
               absl::StrCat("certificates changed; fingerprint ", identity.fingerprint, ", until ",
                            absl::FormatTime("%Y-%m-%d", identity.not_after, absl::UTCTimeZone())),
               "");
  }
}

void DaemonServer::Audit(absl::string_view event) {
  if (parts_.audit == nullptr) return;
  if (const absl::Status written = parts_.audit->Record(event); !written.ok()) {
    metrics_.CountAuditFailure();
    Log(LogLevel::kError, written.message());
  }
}

DaemonOptions DaemonServer::options() const {
  const std::lock_guard<std::mutex> guard(options_mutex_);
  return options_;
}

}  // namespace privatemail::server
