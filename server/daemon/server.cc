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
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/daemon/files.h"
#include "server/daemon/probe.h"
#include "server/services/log.h"
#include "server/store/postgres/postgres_store.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail {
namespace {

// Linking the reflection library turns reflection on for every server of the program; this takes it
// out again.
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

absl::StatusOr<std::optional<TlsIdentity>> PrepareIdentity(const DaemonOptions& options) {
  if (options.insecure) return std::nullopt;
  if (options.tls_certificate.empty()) {
    // Absolute, because the path is printed for clients, who run elsewhere.
    return SelfSignedIdentity(std::filesystem::absolute(options.data_directory) / "tls");
  }
  return LoadIdentity(options.tls_certificate, options.tls_key);
}

// TLS 1.2 and 1.3: what gRPC allows when nothing else is said.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(
    const DaemonOptions& options, const std::optional<TlsIdentity>& identity) {
  if (!identity) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({identity->key_pem, identity->certificate_pem});
  if (!options.client_ca.empty()) {
    PM_ASSIGN_OR_RETURN(tls.pem_root_certs, LoadAuthorities("--client-ca", options.client_ca));
    tls.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return grpc::SslServerCredentials(tls);
}

// `lock`: of the data directory, unless the store holds it.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const DaemonOptions& options,
                                                 std::optional<DirectoryLock>* lock) {
  PM_ASSIGN_OR_RETURN(const StoreKind kind, ParseStoreKind(options.store));
  if (kind == StoreKind::kSqlite) return SqliteStore::Open(options.data_directory);
  PM_ASSIGN_OR_RETURN(const std::string conninfo,
                      ReadFile("--postgres-file", options.postgres_file));
  PM_ASSIGN_OR_RETURN(DirectoryLock acquired, DirectoryLock::Acquire(options.data_directory));
  lock->emplace(std::move(acquired));
  postgres::PoolOptions pool;
  pool.size = options.postgres_connections;
  return PostgresStore::Open(conninfo, pool);
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

}  // namespace

DaemonServer::DaemonServer(ListenAddress address, std::optional<DirectoryLock> lock,
                           std::optional<TlsIdentity> identity, std::unique_ptr<Catalog> catalog)
    : address_(std::move(address)),
      lock_(std::move(lock)),
      identity_(std::move(identity)),
      catalog_(std::move(catalog)),
      retrieval_(catalog_.get()),
      collections_(catalog_.get()) {}

DaemonServer::~DaemonServer() { Drain(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<DaemonServer>> DaemonServer::Start(const DaemonOptions& options) {
  PM_RETURN_IF_ERROR(Validate(options));
  PM_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(options.listen));
  // The store first: with it the data directory is made and locked, so that no two daemons make
  // certificates at once.
  std::optional<DirectoryLock> lock;
  PM_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenStore(options, &lock));
  PM_ASSIGN_OR_RETURN(std::optional<TlsIdentity> identity, PrepareIdentity(options));
  PM_ASSIGN_OR_RETURN(std::unique_ptr<Catalog> catalog,
                      Catalog::Open(std::move(store), LogRefresh));
  auto daemon = std::unique_ptr<DaemonServer>(new DaemonServer(
      std::move(address), std::move(lock), std::move(identity), std::move(catalog)));
  PM_RETURN_IF_ERROR(daemon->Listen(options));
  return daemon;
}

absl::Status DaemonServer::Listen(const DaemonOptions& options) {
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                      Credentials(options, identity_));
  PM_RETURN_IF_ERROR(CheckCanListen(address_));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address_.ToString(), credentials, &port);
  // Two daemons that share a port would each get some of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  grpc::ResourceQuota quota("calls");
  quota.SetMaxThreads(options.max_threads);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  // Named here, the library is linked whatever the flag says.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
  builder.RegisterService(&retrieval_);
  builder.RegisterService(&collections_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address_.ToString()));
  }
  address_.port = port;
  return absl::OkStatus();
}

void DaemonServer::Drain(absl::Duration grace) {
  if (server_ == nullptr) return;
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();
  server_.reset();
}

}  // namespace privatemail
