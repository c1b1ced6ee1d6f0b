#include "server/daemon/reloadable_tls.h"

#include <grpc/grpc.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

absl::StatusOr<std::string> ReadAuthorities(const std::string& client_ca) {
  if (client_ca.empty()) return std::string();
  return LoadAuthorities("--client-ca", client_ca);
}

// gRPC's C++ interface has no credentials that ask for certificates; its C interface does.
class FetchingCredentials final : public grpc::ServerCredentials {
 public:
  explicit FetchingCredentials(grpc_server_credentials* credentials) : credentials_(credentials) {}
  ~FetchingCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ReloadableTls>> ReloadableTls::Start(TlsIdentity identity,
                                                                    const std::string& client_ca) {
  PM_ASSIGN_OR_RETURN(std::string authorities_pem, ReadAuthorities(client_ca));
  return std::unique_ptr<ReloadableTls>(
      new ReloadableTls(std::move(identity), client_ca, std::move(authorities_pem)));
}

grpc_ssl_certificate_config_reload_status ReloadableTls::Fetch(
    void* self, grpc_ssl_server_certificate_config** config) {
  auto& tls = *static_cast<ReloadableTls*>(self);
  const std::lock_guard<std::mutex> guard(tls.mutex_);
  if (!std::exchange(tls.has_changed_, false)) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair = {tls.identity_.key_pem.c_str(),
                                           tls.identity_.certificate_pem.c_str()};
  // gRPC insists on authorities, also where it requests no certificate that they could have signed.
  const std::string& authorities =
      tls.client_ca_.empty() ? tls.identity_.certificate_pem : tls.authorities_pem_;
  *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

std::shared_ptr<grpc::ServerCredentials> ReloadableTls::Credentials() {
  return std::make_shared<FetchingCredentials>(grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(
          client_ca_.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                             : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
          &ReloadableTls::Fetch, this)));
}

absl::StatusOr<bool> ReloadableTls::Refresh() {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(TlsIdentity fresh,
                      LoadIdentity(identity_.certificate_path, identity_.key_path));
  PM_ASSIGN_OR_RETURN(std::string authorities_pem, ReadAuthorities(client_ca_));
  const bool same_identity =
      fresh.key_pem == identity_.key_pem && fresh.certificate_pem == identity_.certificate_pem;
  if (same_identity && authorities_pem == authorities_pem_) return false;
  if (!same_identity && fresh.not_after < absl::Now()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--tls-cert ", fresh.certificate_path, " holds a certificate that expired on ",
                     absl::FormatTime("%Y-%m-%d", fresh.not_after, absl::UTCTimeZone())));
  }
  identity_ = std::move(fresh);
  authorities_pem_ = std::move(authorities_pem);
  has_changed_ = true;
  return true;
}

TlsIdentity ReloadableTls::identity() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return identity_;
}

}  // namespace privatemail::server
