#include "server/daemon/certificate.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/rpc/pem.h"

namespace privatemail::server {
namespace {

constexpr int64_t kDay = 24 * 3600;
constexpr int64_t kSecondsValid = 3650 * kDay;
constexpr int kSerialBits = 127;  // positive and at most 20 bytes, RFC 5280

struct Free {
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};

absl::Status OpenSslFailed(absl::string_view doing) {
  return absl::InternalError(OpenSslReason(doing));
}

// The host name if a certificate may contain it, otherwise "".
std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0) return "";
  for (const char* c = name; *c != '\0'; ++c) {
    if (!absl::ascii_isalnum(*c) && *c != '-' && *c != '.') return "";
  }
  return name;
}

absl::Status SetSerialAndTimes(X509* certificate) {
  const std::unique_ptr<BIGNUM, Free> serial(BN_new());
  if (serial == nullptr ||
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) == nullptr ||
      X509_gmtime_adj(X509_getm_notBefore(certificate), -kDay) == nullptr ||
      X509_gmtime_adj(X509_getm_notAfter(certificate), kSecondsValid) == nullptr) {
    return OpenSslFailed("set the certificate's serial number and times");
  }
  return absl::OkStatus();
}

absl::Status SetNames(X509* certificate) {
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto* common_name = reinterpret_cast<const unsigned char*>("privatemaild");
  if (X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common_name, -1, -1, 0) != 1 ||
      X509_set_issuer_name(certificate, name) != 1) {
    return OpenSslFailed("set the certificate's name");
  }
  std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";
  const std::string host = HostName();
  if (!host.empty() && host != "localhost") absl::StrAppend(&names, ",DNS:", host);
  const std::pair<int, std::string> extensions[] = {{NID_subject_alt_name, names},
                                                    {NID_basic_constraints, "critical,CA:FALSE"},
                                                    {NID_key_usage, "critical,digitalSignature"},
                                                    {NID_ext_key_usage, "serverAuth,clientAuth"},
                                                    {NID_subject_key_identifier, "hash"},
                                                    {NID_authority_key_identifier, "keyid:always"}};
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  for (const auto& [kind, value] : extensions) {
    const std::unique_ptr<X509_EXTENSION, Free> extension(
        X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
    if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
      return OpenSslFailed(absl::StrCat("add the certificate extension ", value));
    }
  }
  return absl::OkStatus();
}

// False, with the reason in OpenSSL's queue of errors, for a key whose private part is damaged and
// for what this machine's security level rejects: every client would fail, and gRPC would not say
// why.
bool CanBeServed(const std::vector<Certificate>& chain, EVP_PKEY* key) {
  ERR_clear_error();
  const std::unique_ptr<SSL_CTX, Free> context(SSL_CTX_new(TLS_server_method()));
  const std::unique_ptr<EVP_PKEY_CTX, Free> check(EVP_PKEY_CTX_new(key, nullptr));
  if (context == nullptr || check == nullptr || EVP_PKEY_pairwise_check(check.get()) != 1 ||
      SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key) != 1) {
    return false;
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) != 1) return false;
  }
  return true;
}

// Clients follow the chain from the server's certificate up to an authority that they trust.
absl::Status CheckSignatures(absl::string_view what, const std::vector<Certificate>& chain) {
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    if (X509_check_issued(chain[i + 1].get(), chain[i].get()) == X509_V_OK &&
        X509_verify(chain[i].get(), X509_get0_pubkey(chain[i + 1].get())) == 1) {
      continue;
    }
    ERR_clear_error();
    return absl::FailedPreconditionError(absl::StrCat(
        what, " must hold the server's own certificate and then each one's issuer, but number ",
        i + 2, " has not issued number ", i + 1));
  }
  return absl::OkStatus();
}

// Clients reject certificates that were issued for another purpose.
absl::Status CheckPurpose(absl::string_view what, X509* certificate) {
  const bool serves = X509_check_purpose(certificate, X509_PURPOSE_SSL_SERVER, /*ca=*/0) == 1;
  ERR_clear_error();
  if (serves) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what,
      " is not a server's certificate: where it has an extended key usage, that must contain "
      "serverAuth, and its key usage must allow signatures"));
}

// The kinds that the ciphers of gRPC, ECDHE with AES-GCM, can sign with.
absl::Status CheckKind(absl::string_view what, const EVP_PKEY* key) {
  for (const char* const kind : {"RSA", "RSA-PSS", "EC", "ED25519", "ED448"}) {
    if (EVP_PKEY_is_a(key, kind) == 1) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(what, " must be a key of RSA, an elliptic curve, Ed25519 or Ed448, but is of ",
                   EVP_PKEY_get0_type_name(key)));
}

absl::Status CheckPair(absl::string_view certificate, absl::string_view key,
                       const std::vector<Certificate>& chain, EVP_PKEY* private_key) {
  if (X509_check_private_key(chain.front().get(), private_key) != 1) {
    ERR_clear_error();
    return absl::FailedPreconditionError(absl::StrCat(key, " is not the key of ", certificate));
  }
  PM_RETURN_IF_ERROR(CheckSignatures(certificate, chain));
  PM_RETURN_IF_ERROR(CheckPurpose(certificate, chain.front().get()));
  PM_RETURN_IF_ERROR(CheckKind(key, private_key));
  if (CanBeServed(chain, private_key)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(certificate, " with ", key, " ", OpenSslReason("be served over TLS")));
}

// remedy: how to have a certificate with other dates.
absl::StatusOr<TlsIdentity> Load(const std::string& certificate_path, const std::string& key_path,
                                 const std::string& remedy) {
  TlsIdentity identity;
  identity.remedy = absl::StrCat("set the clock if it is wrong, otherwise ", remedy);
  identity.certificate_path = certificate_path;
  identity.key_path = key_path;
  const std::string certificate = absl::StrCat("--tls-cert ", certificate_path);
  const std::string key = absl::StrCat("--tls-key ", key_path);
  PM_ASSIGN_OR_RETURN(identity.certificate_pem, ReadFile("--tls-cert", certificate_path));
  PM_ASSIGN_OR_RETURN(const std::string key_file, ReadFile("--tls-key", key_path));
  PM_ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                      ParseCertificates(certificate, identity.certificate_pem));
  PM_ASSIGN_OR_RETURN(const PrivateKey private_key, ParsePrivateKey(key, key_file));
  PM_RETURN_IF_ERROR(CheckPair(certificate, key, chain, private_key.get()));
  Validity validity;
  for (const Certificate& one : chain) {
    PM_RETURN_IF_ERROR(Narrow(certificate, one.get(), &validity));
  }
  if (const absl::Time now = absl::Now(); now < validity.not_before) {
    return absl::FailedPreconditionError(DescribeInvalidity(certificate, validity, now, remedy));
  }
  PM_ASSIGN_OR_RETURN(identity.key_pem, ToPem(private_key.get()));
  PM_ASSIGN_OR_RETURN(identity.fingerprint, FingerprintOf(*chain.front()));
  identity.not_after = validity.not_after;
  return identity;
}

// INTERNAL: OpenSSL failed. Errors of writing.
absl::Status CreateSelfSigned(const std::string& certificate_path, const std::string& key_path) {
  const PrivateKey key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslFailed("make a P-256 key");
  const Certificate certificate(X509_new());
  // X.509 version 3 is encoded as 2.
  if (certificate == nullptr || X509_set_version(certificate.get(), 2) != 1 ||
      X509_set_pubkey(certificate.get(), key.get()) != 1) {
    return OpenSslFailed("make a certificate");
  }
  PM_RETURN_IF_ERROR(SetSerialAndTimes(certificate.get()));
  PM_RETURN_IF_ERROR(SetNames(certificate.get()));
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) {
    return OpenSslFailed("sign the certificate");
  }
  PM_ASSIGN_OR_RETURN(const std::string certificate_pem, ToPem(certificate.get()));
  PM_ASSIGN_OR_RETURN(const std::string key_pem, ToPem(key.get()));
  PM_RETURN_IF_ERROR(WriteFileAtomically(key_path, key_pem, 0600));
  return WriteFileAtomically(certificate_path, certificate_pem, 0644);
}

}  // namespace

absl::StatusOr<TlsIdentity> LoadIdentity(const std::string& certificate_path,
                                         const std::string& key_path) {
  return Load(certificate_path, key_path, "replace it by one that is valid now");
}

absl::StatusOr<TlsIdentity> LoadOrCreateIdentity(const std::string& directory) {
  const std::string certificate_path = absl::StrCat(directory, "/server.crt");
  const std::string key_path = absl::StrCat(directory, "/server.key");
  // Not writable by others: a replaced certificate would impersonate the server.
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot create directory ", directory, ": ", std::strerror(errno)));
  }
  // The key is written first: a key without a certificate is left by a crash, and no client has
  // seen its certificate.
  const bool known = std::filesystem::exists(certificate_path);
  if (known && !std::filesystem::exists(key_path)) {
    return absl::FailedPreconditionError(absl::StrCat(
        key_path, " is missing but its certificate ", certificate_path,
        " is there: restore the key, or delete the certificate to have both created again (clients "
        "must then trust the new fingerprint)"));
  }
  if (!known) PM_RETURN_IF_ERROR(CreateSelfSigned(certificate_path, key_path));
  PM_ASSIGN_OR_RETURN(
      TlsIdentity identity,
      Load(certificate_path, key_path,
           absl::StrCat("delete it and ", key_path, " and start again to have both created again (",
                        "clients must then trust the new fingerprint)")));
  identity.created = !known;
  return identity;
}

absl::StatusOr<std::string> LoadAuthorities(const std::string& flag, const std::string& path) {
  const std::string what = absl::StrCat(flag, " ", path);
  PM_ASSIGN_OR_RETURN(std::string pem, ReadFile(flag, path));
  PM_ASSIGN_OR_RETURN(const std::vector<Certificate> authorities, ParseCertificates(what, pem));
  const absl::Time now = absl::Now();
  for (const Certificate& one : authorities) {
    Validity validity;
    PM_RETURN_IF_ERROR(Narrow(what, one.get(), &validity));
    if (validity.Holds(now)) return pem;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      what, " must hold an authority that is valid now, but all of them (", authorities.size(),
      ") have expired or are not valid yet by this machine's clock, which may be wrong"));
}

}  // namespace privatemail::server
