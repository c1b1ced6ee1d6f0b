#include "client/transport/credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/base/field_error.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/rpc/pem.h"

namespace privatemail::client {
namespace {

using grpc::experimental::TlsCustomVerificationCheckRequest;

// The fingerprint of the first certificate; empty if the text holds none.
std::string CertificateFingerprint(const std::string& pem) {
  const absl::StatusOr<std::vector<Certificate>> all = ParseCertificates("certificate", pem);
  return all.ok() ? FingerprintOf(*all->front()).value_or("") : "";
}

// Accepts one certificate regardless of issuer and name. TLS proves that the server holds its key.
class PinnedCertificate final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit PinnedCertificate(std::string fingerprint) : fingerprint_(std::move(fingerprint)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*done*/, grpc::Status* sync_status) override {
    const grpc::string_ref pem = request->peer_cert();
    const std::string actual = CertificateFingerprint(std::string(pem.data(), pem.size()));
    *sync_status =
        actual == fingerprint_
            ? grpc::Status::OK
            : grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                           absl::StrCat(kFingerprintMismatch, actual, kTrustNames, fingerprint_));
    return true;  // synchronous
  }

  void Cancel(TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  std::string fingerprint_;
};

// The client's certificate; both empty: none.
struct OwnCertificate {
  std::string certificate_pem;
  std::string key_pem;
};

// An error of the file that the option names.
absl::Status CheckFile(absl::string_view option, const absl::Status& status) {
  if (status.ok()) return status;
  return InvalidField(option, absl::StrCat("cannot be used: ", status.message()));
}

// The content of a file that only its owner may access.
absl::StatusOr<std::string> ReadSecret(absl::string_view option, const std::string& path) {
  absl::StatusOr<std::string> content = ReadFile("file", path);
  struct stat properties = {};
  PM_RETURN_IF_ERROR(CheckFile(option, content.status()));
  if (::stat(path.c_str(), &properties) != 0) {
    return InvalidField(option, absl::StrCat("cannot be used: cannot read ", path));
  }
  if ((properties.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return FieldError(absl::StatusCode::kPermissionDenied, option,
                      "a file that is accessible to its owner alone (mode 0600)",
                      absl::StrFormat("%s with mode %04o", path, properties.st_mode & 07777U));
  }
  return content;
}

absl::StatusOr<std::string> ParseFingerprint(const std::string& text) {
  const std::string hex = absl::AsciiStrToLower(absl::StrReplaceAll(text, {{":", ""}}));
  if (hex.size() != 64 || !std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit)) {
    return FieldError("trust_fingerprint", "a SHA-256 fingerprint of 64 hex digits",
                      absl::StrCat("\"", text, "\""));
  }
  return hex;
}

std::shared_ptr<grpc::ChannelCredentials> PinnedCredentials(const std::string& fingerprint,
                                                            const OwnCertificate& own) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  if (!own.key_pem.empty()) {
    options.set_certificate_provider(
        std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
            std::vector<grpc::experimental::IdentityKeyCertPair>{
                {own.key_pem, own.certificate_pem}}));
    options.watch_identity_key_cert_pairs();
  }
  options.set_verify_server_certs(false);  // the pinned certificate replaces the chain
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<PinnedCertificate>(fingerprint));
  return grpc::experimental::TlsCredentials(options);
}

absl::StatusOr<std::string> ReadCertificates(absl::string_view option, const std::string& path) {
  const absl::StatusOr<std::string> pem = ReadFile("file", path);
  PM_RETURN_IF_ERROR(CheckFile(option, pem.status()));
  PM_RETURN_IF_ERROR(CheckFile(option, ParseCertificates(path, *pem).status()));
  return pem;
}

// gRPC's own error would only be that the connection failed.
absl::Status CheckPair(const ConnectionOptions& options, const OwnCertificate& own) {
  constexpr char kOption[] = "certificate_key_file";
  const std::string& path = options.certificate_key_file;
  const absl::StatusOr<PrivateKey> key = ParsePrivateKey(path, own.key_pem);
  PM_RETURN_IF_ERROR(CheckFile(kOption, key.status()));
  PM_ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                      ParseCertificates("certificate_file", own.certificate_pem));
  const bool belongs = X509_check_private_key(chain.front().get(), key->get()) == 1;
  ERR_clear_error();
  if (belongs) return absl::OkStatus();
  return FieldError(kOption, absl::StrCat("the key of the certificate ", options.certificate_file),
                    absl::StrCat(path, ", another key"));
}

absl::StatusOr<OwnCertificate> ReadOwnCertificate(const ConnectionOptions& options) {
  OwnCertificate own;
  if (options.certificate_file.empty()) return own;
  PM_ASSIGN_OR_RETURN(own.certificate_pem,
                      ReadCertificates("certificate_file", options.certificate_file));
  PM_ASSIGN_OR_RETURN(own.key_pem,
                      ReadSecret("certificate_key_file", options.certificate_key_file));
  PM_RETURN_IF_ERROR(CheckPair(options, own));
  return own;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsChannelCredentials(
    const ConnectionOptions& options) {
  PM_ASSIGN_OR_RETURN(const OwnCertificate own, ReadOwnCertificate(options));
  if (!options.trust_fingerprint.empty()) {
    PM_ASSIGN_OR_RETURN(const std::string fingerprint, ParseFingerprint(options.trust_fingerprint));
    return PinnedCredentials(fingerprint, own);
  }
  grpc::SslCredentialsOptions ssl;
  ssl.pem_cert_chain = own.certificate_pem;
  ssl.pem_private_key = own.key_pem;
  if (!options.ca_file.empty()) {
    PM_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadCertificates("ca_file", options.ca_file));
  }
  return grpc::SslCredentials(ssl);
}

}  // namespace

absl::StatusOr<std::string> ReadAccessKey(const ConnectionOptions& options) {
  const std::string& path = options.key_file;
  if (path.empty() || options.insecure) return "";
  PM_ASSIGN_OR_RETURN(const std::string text, ReadSecret("key_file", path));
  std::string key(absl::StripAsciiWhitespace(text));
  // One line of visible ASCII, as an HTTP header requires.
  if (key.empty() || !std::all_of(key.begin(), key.end(), absl::ascii_isgraph)) {
    return FieldError(
        "key_file", "a file with one key on one line",
        absl::StrCat(path, ", which ",
                     key.empty() ? "is empty" : "holds blanks or control characters"));
  }
  return key;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ConnectionOptions& options, const std::string& access_key) {
  const bool has_ca = !options.ca_file.empty();
  if (!options.trust_fingerprint.empty() && (has_ca || options.insecure)) {
    return InvalidField("trust_fingerprint", "does not apply with an authority or without TLS");
  }
  if (has_ca && options.insecure) return InvalidField("ca_file", "does not apply without TLS");
  if (options.certificate_file.empty() != options.certificate_key_file.empty()) {
    const bool has_key = options.certificate_file.empty();
    return FieldError(has_key ? "certificate_file" : "certificate_key_file",
                      has_key ? "given with a certificate's key" : "given with a certificate",
                      "absent");
  }
  if (options.insecure && !options.certificate_file.empty()) {
    return InvalidField("certificate_file", "needs TLS: remove insecure");
  }
  if (options.insecure && !options.key_file.empty()) {
    return InvalidField("key_file", "needs TLS: insecure would send the key in clear; remove it");
  }
  if (options.insecure) return grpc::InsecureChannelCredentials();
  PM_ASSIGN_OR_RETURN(const auto tls, TlsChannelCredentials(options));
  if (access_key.empty()) return tls;
  return grpc::CompositeChannelCredentials(tls, grpc::AccessTokenCredentials(access_key));
}

std::string DescribeAuthorityDates(const ConnectionOptions& options) {
  const absl::StatusOr<std::string> pem = ReadFile("ca_file", options.ca_file);
  if (!pem.ok()) return "";
  const auto authorities = ParseCertificates("ca_file", *pem);
  if (!authorities.ok()) return "";
  const absl::Time now = absl::Now();
  Validity validity;
  for (const Certificate& one : *authorities) {
    validity = Validity();
    if (!Narrow("ca_file", one.get(), &validity).ok() || validity.Holds(now)) return "";
  }
  return DescribeInvalidity(absl::StrCat("ca_file ", options.ca_file), validity, now,
                            "ask the server's operator for a new one");
}

}  // namespace privatemail::client
