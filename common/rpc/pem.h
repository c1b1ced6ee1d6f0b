// Certificates and private keys: parsing and writing in PEM format, and when they are valid.
#ifndef PRIVATEMAIL_COMMON_RPC_PEM_H_
#define PRIVATEMAIL_COMMON_RPC_PEM_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace privatemail {

struct FreeOpenSsl {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreeOpenSsl>;
using Certificate = std::unique_ptr<X509, FreeOpenSsl>;
using PrivateKey = std::unique_ptr<EVP_PKEY, FreeOpenSsl>;

// "cannot DOING: " and OpenSSL's first queued error; clears the queue.
std::string OpenSslReason(absl::string_view doing);

// The certificates of a PEM text in order, at least one. FAILED_PRECONDITION naming `what`: there
// is none, or a block is damaged (OpenSSL would stop reading there without an error).
absl::StatusOr<std::vector<Certificate>> ParseCertificates(absl::string_view what,
                                                           const std::string& pem);

// SHA-256 of the DER in lower-case hex. INTERNAL: OpenSSL failed.
absl::StatusOr<std::string> FingerprintOf(const X509& certificate);
// FAILED_PRECONDITION naming `what`: it holds no key, or one with a passphrase.
absl::StatusOr<PrivateKey> ParsePrivateKey(absl::string_view what, const std::string& pem);

// INTERNAL: OpenSSL failed.
absl::StatusOr<std::string> ToPem(X509* certificate);
absl::StatusOr<std::string> ToPem(EVP_PKEY* key);

// When certificates are valid.
struct Validity {
  absl::Time not_before = absl::InfinitePast();
  absl::Time not_after = absl::InfiniteFuture();

  bool Holds(absl::Time time) const { return not_before <= time && time <= not_after; }
};

// Intersects *validity with that of a certificate. FAILED_PRECONDITION naming `what`: one of its
// dates cannot be read.
absl::Status Narrow(absl::string_view what, const X509* certificate, Validity* validity);

// "WHAT is not valid before T (expired at T), and by this machine's clock it is NOW: set the clock
// if it is wrong, otherwise REMEDY". Requires !validity.Holds(now).
std::string DescribeInvalidity(absl::string_view what, const Validity& validity, absl::Time now,
                               absl::string_view remedy);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_RPC_PEM_H_
