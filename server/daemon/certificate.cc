#include "server/daemon/certificate.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/rpc/pem.h"
#include "server/daemon/self_signed.h"
#include "server/daemon/trial_handshake.h"

namespace privatemail::server {
namespace {

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

// When all of these are valid.
struct Validity {
  absl::Time not_before = absl::InfinitePast();
  absl::Time not_after = absl::InfiniteFuture();
};

absl::Status Narrow(absl::string_view what, X509* certificate, Validity* validity) {
  PM_ASSIGN_OR_RETURN(const absl::Time from, TimeOf(what, X509_get0_notBefore(certificate)));
  PM_ASSIGN_OR_RETURN(const absl::Time until, TimeOf(what, X509_get0_notAfter(certificate)));
  validity->not_before = std::max(validity->not_before, from);
  validity->not_after = std::min(validity->not_after, until);
  return absl::OkStatus();
}

enum class Role { kServer, kAuthority };

// Whether a certificate says that it was signed with its own key. One bit that flips in the name or
// the key identifier of one side leaves the other to say so.
bool SaysThatItSignedItself(X509* certificate, Role role) {
  const bool own_name =
      X509_NAME_cmp(X509_get_subject_name(certificate), X509_get_issuer_name(certificate)) == 0;
  const ASN1_OCTET_STRING* key = X509_get0_subject_key_id(certificate);
  const ASN1_OCTET_STRING* issuers_key = X509_get0_authority_key_id(certificate);
  if (key == nullptr || issuers_key == nullptr) return own_name;
  // An authority's new certificate may be signed with the old key of the same name.
  return ASN1_OCTET_STRING_cmp(key, issuers_key) == 0 || (own_name && role == Role::kServer);
}

// Nobody else would look at such a signature: a certificate that a client trusts needs none.
absl::Status CheckOwnSignature(absl::string_view what, X509* certificate, Role role) {
  if (!SaysThatItSignedItself(certificate, role) ||
      X509_verify(certificate, X509_get0_pubkey(certificate)) == 1) {
    ERR_clear_error();
    return absl::OkStatus();
  }
  ERR_clear_error();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " holds a damaged certificate: its signature of itself is not valid"));
}

// Clients go from the server's own certificate up to an authority that they know.
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
  // Those before it are signed by their next.
  const Role role = chain.size() == 1 ? Role::kServer : Role::kAuthority;
  return CheckOwnSignature(what, chain.back().get(), role);
}

absl::Status CheckBegun(absl::string_view what, absl::Time not_before, absl::Time now) {
  if (not_before <= now) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(what, " is not valid before ", Text(not_before),
                                                    ", and by this machine's clock it is ",
                                                    Text(now)));
}

// The check against a certificate compares public parts alone.
bool IsConsistent(EVP_PKEY* key) {
  EVP_PKEY_CTX* context = EVP_PKEY_CTX_new(key, nullptr);
  const int checked = context == nullptr ? 0 : EVP_PKEY_pairwise_check(context);
  EVP_PKEY_CTX_free(context);
  ERR_clear_error();
  constexpr int kUnknownForItsKind = -2;
  return checked == 1 || checked == kUnknownForItsKind;
}

// Clients that know the authority refuse a certificate that was issued for something else.
absl::Status CheckPurpose(absl::string_view what, X509* certificate) {
  const bool serves = X509_check_purpose(certificate, X509_PURPOSE_SSL_SERVER, /*ca=*/0) == 1;
  ERR_clear_error();
  if (serves) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what,
      " is not a server's certificate: where it has an extended key usage, that must contain "
      "serverAuth, and its key usage must allow signatures"));
}

absl::Status CheckPair(absl::string_view certificate, absl::string_view key,
                       const std::vector<Certificate>& chain, EVP_PKEY* private_key) {
  if (X509_check_private_key(chain.front().get(), private_key) != 1) {
    ERR_clear_error();
    return absl::FailedPreconditionError(absl::StrCat(key, " is not the key of ", certificate));
  }
  if (!IsConsistent(private_key)) {
    return absl::FailedPreconditionError(
        absl::StrCat(key, " holds a damaged key: its private part is not that of its public one"));
  }
  PM_RETURN_IF_ERROR(CheckSignatures(certificate, chain));
  PM_RETURN_IF_ERROR(CheckPurpose(certificate, chain.front().get()));
  const absl::Status tried = TryHandshake(chain, private_key);
  if (tried.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(certificate, " ", tried.message()));
}

}  // namespace

absl::StatusOr<TlsIdentity> LoadIdentity(const std::string& certificate_path,
                                         const std::string& key_path) {
  TlsIdentity identity;
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
  PM_RETURN_IF_ERROR(CheckBegun(certificate, validity.not_before, absl::Now()));
  PM_ASSIGN_OR_RETURN(identity.key_pem, ToPem(private_key.get()));
  PM_ASSIGN_OR_RETURN(identity.fingerprint, FingerprintOf(*chain.front()));
  identity.not_after = validity.not_after;
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
  const std::string what = absl::StrCat(flag, " ", path);
  PM_ASSIGN_OR_RETURN(std::string pem, ReadFile(flag, path));
  PM_ASSIGN_OR_RETURN(const std::vector<Certificate> authorities, ParseCertificates(what, pem));
  for (const Certificate& one : authorities) {
    PM_RETURN_IF_ERROR(CheckOwnSignature(what, one.get(), Role::kAuthority));
  }
  const absl::Time now = absl::Now();
  for (const Certificate& one : authorities) {
    Validity validity;
    PM_RETURN_IF_ERROR(Narrow(what, one.get(), &validity));
    if (validity.not_before <= now && now <= validity.not_after) return pem;
  }
  return absl::FailedPreconditionError(
      absl::StrCat(what, " must hold an authority that is valid now, but all of them (",
                   authorities.size(), ") have expired or are not valid yet"));
}

}  // namespace privatemail::server
