#include "common/rpc/pem.h"

#include <openssl/asn1.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

// A program may end while threads of gRPC still use OpenSSL, so that it must not free anything at
// exit. This holds if it is said before any other use, hence before main.
[[maybe_unused]] const int kKeptAtExit = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

// Keeps OpenSSL from prompting for a passphrase on the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return 0; }

Bio Reader(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Returns the text that `write` writes into the memory. `write` returns 1 unless it fails.
absl::StatusOr<std::string> Written(absl::string_view what, const BIO_METHOD* memory,
                                    absl::FunctionRef<int(BIO*)> write) {
  const Bio text(BIO_new(memory));
  if (text == nullptr || write(text.get()) != 1) {
    return absl::InternalError(OpenSslReason(absl::StrCat("write a ", what)));
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  if (size <= 0) return absl::InternalError(OpenSslReason("write PEM"));
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<absl::Time> TimeOf(absl::string_view what, const ASN1_TIME* time) {
  std::tm broken_down = {};
  if (ASN1_TIME_to_tm(time, &broken_down) == 1) {
    return absl::FromTM(broken_down, absl::UTCTimeZone());
  }
  ERR_clear_error();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " holds a damaged certificate: one of its dates cannot be read"));
}

std::string Text(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

}  // namespace

std::string OpenSslReason(absl::string_view doing) {
  char reason[256] = {};
  ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
  ERR_clear_error();
  return absl::StrCat("cannot ", doing, ": ", reason);
}

absl::StatusOr<std::vector<Certificate>> ParseCertificates(absl::string_view what,
                                                           const std::string& pem) {
  std::vector<Certificate> all;
  const Bio reader = Reader(pem);
  ERR_clear_error();
  while (Certificate next{PEM_read_bio_X509_AUX(reader.get(), nullptr, NoPassphrase, nullptr)}) {
    all.push_back(std::move(next));
  }
  const unsigned long error = ERR_peek_last_error();
  const bool at_end =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  // In the first and last line of each block; OpenSSL skips a damaged line without an error.
  const std::vector<absl::string_view> between_marks = absl::StrSplit(pem, "CERTIFICATE-----");
  const size_t marks = between_marks.size() - 1;
  if (all.empty() && at_end && marks == 0) {
    return absl::FailedPreconditionError(absl::StrCat(what, " holds no certificate in PEM format"));
  }
  if (!at_end || marks != 2 * all.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " holds a damaged certificate in PEM format, number ", all.size() + 1));
  }
  ERR_clear_error();
  return all;
}

absl::StatusOr<std::string> FingerprintOf(const X509& certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (X509_digest(&certificate, EVP_sha256(), digest, &size) != 1) {
    return absl::InternalError(OpenSslReason("compute a certificate's fingerprint"));
  }
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

absl::StatusOr<PrivateKey> ParsePrivateKey(absl::string_view what, const std::string& pem) {
  PrivateKey key(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key != nullptr) return key;
  return absl::FailedPreconditionError(
      absl::StrCat(what, " holds no private key in PEM format without a passphrase"));
}

absl::StatusOr<std::string> ToPem(X509* certificate) {
  return Written("certificate", BIO_s_mem(),
                 [&](BIO* text) { return PEM_write_bio_X509(text, certificate); });
}

absl::StatusOr<std::string> ToPem(EVP_PKEY* key) {
  return Written("private key", BIO_s_secmem(), [&](BIO* text) {
    return PEM_write_bio_PrivateKey(text, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

absl::Status Narrow(absl::string_view what, const X509* certificate, Validity* validity) {
  PM_ASSIGN_OR_RETURN(const absl::Time from, TimeOf(what, X509_get0_notBefore(certificate)));
  PM_ASSIGN_OR_RETURN(const absl::Time until, TimeOf(what, X509_get0_notAfter(certificate)));
  validity->not_before = std::max(validity->not_before, from);
  validity->not_after = std::min(validity->not_after, until);
  return absl::OkStatus();
}

std::string DescribeInvalidity(absl::string_view what, const Validity& validity, absl::Time now,
                               absl::string_view remedy) {
  const bool early = now < validity.not_before;
  return absl::StrCat(what, early ? " is not valid before " : " expired at ",
                      Text(early ? validity.not_before : validity.not_after),
                      ", and by this machine's clock it is ", Text(now),
                      ": set the clock if it is wrong, otherwise ", remedy);
}

}  // namespace privatemail
