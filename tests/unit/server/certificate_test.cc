#include "server/daemon/certificate.h"

#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

X509* Parse(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

int VerifyAsServer(X509* certificate) {
  X509_STORE* trusted = X509_STORE_new();
  X509_STORE_add_cert(trusted, certificate);
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, trusted, certificate, nullptr);
  X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context), 2);
  X509_verify_cert(context);
  const int error = X509_STORE_CTX_get_error(context);
  X509_STORE_CTX_free(context);
  X509_STORE_free(trusted);
  return error;
}

TEST(SelfSignedIdentity, PassesOpenSslsVerificationForEveryNameOfTheServer) {
  const TemporaryFolder directory;
  const auto identity = SelfSignedIdentity(directory / "tls");
  ASSERT_THAT(identity, IsOk());
  X509* certificate = Parse(identity->certificate_pem);
  ASSERT_NE(certificate, nullptr);
  EXPECT_EQ(VerifyAsServer(certificate), X509_V_OK);
  EXPECT_EQ(X509_check_host(certificate, "localhost", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(certificate, "example.com", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(certificate, "127.0.0.1", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(certificate, "::1", 0), 1);
  EXPECT_EQ(X509_check_ca(certificate), 0) << "could sign for others";

  unsigned char digest[SHA256_DIGEST_LENGTH];
  unsigned int size = 0;
  ASSERT_EQ(X509_digest(certificate, EVP_sha256(), digest, &size), 1);
  EXPECT_EQ(identity->fingerprint,
            absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size)));
  X509_free(certificate);
  EXPECT_GT(identity->not_after, absl::Now() + absl::Hours(24 * 3649));
  EXPECT_TRUE(identity->made_now);
}

TEST(SelfSignedIdentity, KeepsItsKeyToItselfAndIsTheSameNextTime) {
  const TemporaryFolder directory;
  const auto first = SelfSignedIdentity(directory / "tls");
  const auto second = SelfSignedIdentity(directory / "tls");
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(first->fingerprint, second->fingerprint);
  EXPECT_FALSE(second->made_now);
  struct stat info = {};
  ASSERT_EQ(::stat((directory / "tls/server.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "tls")) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 2) << "something temporary was left";
}

TEST(SelfSignedIdentity, StartsOverFromAKeyWhoseCertificateWasNeverWritten) {
  const TemporaryFolder directory;
  ASSERT_THAT(SelfSignedIdentity(directory / "tls"), IsOk());
  std::filesystem::remove(directory / "tls/server.crt");
  EXPECT_THAT(SelfSignedIdentity(directory / "tls"), IsOk());
}

TEST(SelfSignedIdentity, IsNotMadeAnewBehindTheClientsBacks) {
  const TemporaryFolder directory;
  ASSERT_THAT(SelfSignedIdentity(directory / "tls"), IsOk());
  std::filesystem::remove(directory / "tls/server.key");
  EXPECT_THAT(SelfSignedIdentity(directory / "tls"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "server.key is missing"));
}

TEST(LoadIdentity, NamesTheFileThatIsMissingUnreadableOrOfAnother) {
  const TemporaryFolder directory;
  ASSERT_THAT(SelfSignedIdentity(directory / "a"), IsOk());
  ASSERT_THAT(SelfSignedIdentity(directory / "b"), IsOk());
  std::ofstream(directory / "text") << "hello";
  const auto code = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(LoadIdentity(directory / "none", directory / "a/server.key"),
              FailsWith(code, absl::StrCat("cannot read --tls-cert ", directory / "none",
                                           ": No such file or directory")));
  EXPECT_THAT(LoadIdentity(directory / "a/server.crt", directory / "none"),
              FailsWith(code, "cannot read --tls-key"));
  EXPECT_THAT(LoadIdentity(directory / "a", directory / "a/server.key"),
              FailsWith(code, "Is a directory"));
  EXPECT_THAT(LoadIdentity(directory / "text", directory / "a/server.key"),
              FailsWith(code, "holds no certificate in PEM format"));
  EXPECT_THAT(LoadIdentity(directory / "a/server.crt", directory / "text"),
              FailsWith(code, "holds no private key in PEM format"));
  EXPECT_THAT(LoadIdentity(directory / "a/server.crt", directory / "b/server.key"),
              FailsWith(code, "is not the key of --tls-cert"));
}

}  // namespace
}  // namespace privatemail::testing
