#include "server/daemon/self_signed.h"

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
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

absl::Status AddExtension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpenSslFailed(absl::StrCat("add the certificate extension ", value));
  }
  return absl::OkStatus();
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
  PM_RETURN_IF_ERROR(AddExtension(certificate, NID_subject_alt_name, names));
  PM_RETURN_IF_ERROR(AddExtension(certificate, NID_basic_constraints, "critical,CA:FALSE"));
  PM_RETURN_IF_ERROR(AddExtension(certificate, NID_key_usage, "critical,digitalSignature"));
  PM_RETURN_IF_ERROR(AddExtension(certificate, NID_ext_key_usage, "serverAuth"));
  PM_RETURN_IF_ERROR(AddExtension(certificate, NID_subject_key_identifier, "hash"));
  // Second evidence of the signer besides the name, see ClaimsSelfSigned.
  return AddExtension(certificate, NID_authority_key_identifier, "keyid:always");
}

}  // namespace

absl::StatusOr<SelfSignedCertificate> CreateSelfSigned() {
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
  SelfSignedCertificate created;
  PM_ASSIGN_OR_RETURN(created.certificate_pem, ToPem(certificate.get()));
  PM_ASSIGN_OR_RETURN(created.key_pem, ToPem(key.get()));
  return created;
}

}  // namespace privatemail::server
