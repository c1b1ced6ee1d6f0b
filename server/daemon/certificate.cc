#include "server/daemon/certificate.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "server/daemon/self_signed.h"

namespace privatemail {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

std::unique_ptr<BIO, Free> Reader(const std::string& pem) {
  return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

absl::StatusOr<std::unique_ptr<X509, Free>> ParseCertificate(const std::string& what,
                                                             const std::string& path,
                                                             const std::string& pem) {
  std::unique_ptr<X509, Free> certificate(
      PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " ", path, " holds no certificate in PEM format"));
  }
  return certificate;
}

// Without this OpenSSL would ask for a passphrase on the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return 0; }

std::string DerFingerprint(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate, &der);
  if (size < 0) return "";
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(der, static_cast<size_t>(size), reinterpret_cast<unsigned char*>(digest.data()));
  OPENSSL_free(der);
  return absl::BytesToHexString(digest);
}

absl::Time NotAfter(X509* certificate) {
  std::tm broken_down = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &broken_down) != 1) {
    return absl::InfinitePast();
  }
  return absl::FromTM(broken_down, absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<TlsIdentity> LoadIdentity(const std::string& certificate_path,
                                         const std::string& key_path) {
  TlsIdentity identity;
  identity.certificate_path = certificate_path;
  identity.key_path = key_path;
  PM_ASSIGN_OR_RETURN(identity.certificate_pem, ReadFile("--tls-cert", certificate_path));
  PM_ASSIGN_OR_RETURN(identity.key_pem, ReadFile("--tls-key", key_path));
  PM_ASSIGN_OR_RETURN(const auto certificate,
                      ParseCertificate("--tls-cert", certificate_path, identity.certificate_pem));
  const std::unique_ptr<EVP_PKEY, Free> key(
      PEM_read_bio_PrivateKey(Reader(identity.key_pem).get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--tls-key ", key_path, " holds no private key in PEM format without a passphrase"));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("--tls-key ", key_path, " is not the key of --tls-cert ", certificate_path));
  }
  identity.fingerprint = DerFingerprint(certificate.get());
  identity.not_after = NotAfter(certificate.get());
  return identity;
}

absl::StatusOr<TlsIdentity> SelfSignedIdentity(const std::string& directory) {
  const std::string certificate_path = absl::StrCat(directory, "/server.crt");
  const std::string key_path = absl::StrCat(directory, "/server.key");
  // Not writable by others: who can replace the certificate can stand in for the server.
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot create directory ", directory, ": ", std::strerror(errno)));
  }
  // The key is written first, so a certificate always had its key; a key alone is what a crash
  // between the two left, and no client has seen its certificate.
  const bool known = std::filesystem::exists(certificate_path);
  if (known && !std::filesystem::exists(key_path)) {
    return absl::FailedPreconditionError(absl::StrCat(
        key_path, " is missing but its certificate ", certificate_path,
        " is there: restore the key, or delete the certificate to have both made anew (clients "
        "must then trust the new fingerprint)"));
  }
  if (!known) {
    PM_ASSIGN_OR_RETURN(const SelfSigned made, MakeSelfSigned());
    PM_RETURN_IF_ERROR(WriteFileAtomically(key_path, made.key_pem, 0600));
    PM_RETURN_IF_ERROR(WriteFileAtomically(certificate_path, made.certificate_pem, 0644));
  }
  PM_ASSIGN_OR_RETURN(TlsIdentity identity, LoadIdentity(certificate_path, key_path));
  identity.made_now = !known;
  return identity;
}

absl::StatusOr<std::string> LoadAuthorities(const std::string& flag, const std::string& path) {
  PM_ASSIGN_OR_RETURN(std::string pem, ReadFile(flag, path));
  PM_RETURN_IF_ERROR(ParseCertificate(flag, path, pem).status());
  return pem;
}

}  // namespace privatemail
