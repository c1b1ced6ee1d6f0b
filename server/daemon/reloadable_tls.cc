#include "server/daemon/reloadable_tls.h"

#include <fcntl.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

constexpr unsigned int kPollSeconds = 1;

absl::Status MemoryFileError() {
  return absl::InternalError(
      absl::StrCat("cannot keep certificates in memory: ", std::strerror(errno)));
}

absl::StatusOr<int> CreateMemoryFile(absl::string_view content) {
  const int file = ::memfd_create("certificates", MFD_CLOEXEC);
  if (file < 0) return MemoryFileError();
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0) {
      const absl::Status status = MemoryFileError();
      ::close(file);
      return status;
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  return file;
}

std::string KeyAndChain(const TlsIdentity& identity) {
  return absl::StrCat(identity.key_pem, "\n", identity.certificate_pem);
}

absl::StatusOr<std::string> ReadAuthorities(const std::string& client_ca) {
  if (client_ca.empty()) return std::string();
  return LoadAuthorities("--client-ca", client_ca);
}

}  // namespace

absl::StatusOr<MemoryFile> MemoryFile::Create(absl::string_view content) {
  PM_ASSIGN_OR_RETURN(const int file, CreateMemoryFile(content));
  return MemoryFile(file);
}

MemoryFile::~MemoryFile() {
  if (file_ >= 0) ::close(file_);
}

absl::Status MemoryFile::Replace(absl::string_view content) {
  PM_ASSIGN_OR_RETURN(const int fresh, CreateMemoryFile(content));
  const int done = ::dup3(fresh, file_, O_CLOEXEC);
  const absl::Status status = done < 0 ? MemoryFileError() : absl::OkStatus();
  ::close(fresh);
  return status;
}

std::string MemoryFile::path() const { return absl::StrCat("/proc/self/fd/", file_); }

ReloadableTls::ReloadableTls(TlsIdentity identity, std::string client_ca,
                             std::string authorities_pem, MemoryFile served, MemoryFile authorities)
    : client_ca_(std::move(client_ca)),
      identity_(std::move(identity)),
      authorities_pem_(std::move(authorities_pem)),
      served_(std::move(served)),
      authorities_(std::move(authorities)),
      watched_(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          served_.path(), served_.path(), client_ca_.empty() ? "" : authorities_.path(),
          kPollSeconds)) {}

absl::StatusOr<std::unique_ptr<ReloadableTls>> ReloadableTls::Start(TlsIdentity identity,
                                                                    const std::string& client_ca) {
  PM_ASSIGN_OR_RETURN(std::string authorities_pem, ReadAuthorities(client_ca));
  PM_ASSIGN_OR_RETURN(MemoryFile served, MemoryFile::Create(KeyAndChain(identity)));
  PM_ASSIGN_OR_RETURN(MemoryFile authorities, MemoryFile::Create(authorities_pem));
  return std::unique_ptr<ReloadableTls>(
      new ReloadableTls(std::move(identity), client_ca, std::move(authorities_pem),
                        std::move(served), std::move(authorities)));
}

std::shared_ptr<grpc::ServerCredentials> ReloadableTls::Credentials() const {
  const bool mutual = !client_ca_.empty();
  grpc::experimental::TlsServerCredentialsOptions options(watched_);
  options.watch_identity_key_cert_pairs();
  if (mutual) options.watch_root_certs();
  options.set_cert_request_type(mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                       : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

absl::StatusOr<bool> ReloadableTls::Refresh() {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(TlsIdentity fresh,
                      LoadIdentity(identity_.certificate_path, identity_.key_path));
  PM_ASSIGN_OR_RETURN(std::string authorities_pem, ReadAuthorities(client_ca_));
  const bool same_identity = KeyAndChain(fresh) == KeyAndChain(identity_);
  if (same_identity && authorities_pem == authorities_pem_) return false;
  if (!same_identity && fresh.not_after < absl::Now()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--tls-cert ", fresh.certificate_path, " holds a certificate that expired on ",
                     absl::FormatTime("%Y-%m-%d", fresh.not_after, absl::UTCTimeZone())));
  }
  if (!same_identity) PM_RETURN_IF_ERROR(served_.Replace(KeyAndChain(fresh)));
  PM_RETURN_IF_ERROR(authorities_.Replace(authorities_pem));
  identity_ = std::move(fresh);
  authorities_pem_ = std::move(authorities_pem);
  return true;
}

TlsIdentity ReloadableTls::identity() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return identity_;
}

}  // namespace privatemail::server
