#include "server/daemon/certificate.h"

#include <openssl/sha.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/pem.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

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

TEST(LoadOrCreateIdentity, CreatedCertificatePassesVerification) {
  const TemporaryFolder directory;
  ASSERT_OK_AND_ASSIGN(const auto identity, LoadOrCreateIdentity(directory / "tls"));
  ASSERT_OK_AND_ASSIGN(const auto chain, ParseCertificates("made", identity.certificate_pem));
  X509* certificate = chain.front().get();
  EXPECT_EQ(VerifyAsServer(certificate), X509_V_OK);
  EXPECT_EQ(X509_check_host(certificate, "localhost", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(certificate, "example.com", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(certificate, "127.0.0.1", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(certificate, "::1", 0), 1);
  EXPECT_EQ(X509_check_ca(certificate), 0) << "could sign for others";
  time_t an_hour_ago = absl::ToTimeT(absl::Now() - absl::Hours(1));
  EXPECT_LT(X509_cmp_time(X509_get0_notBefore(certificate), &an_hour_ago), 0);

  unsigned char digest[SHA256_DIGEST_LENGTH];
  unsigned int size = 0;
  ASSERT_EQ(X509_digest(certificate, EVP_sha256(), digest, &size), 1);
  EXPECT_EQ(identity.fingerprint,
            absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size)));
  EXPECT_GT(identity.not_after, absl::Now() + absl::Hours(24 * 3649));
  EXPECT_TRUE(identity.created);
}

TEST(LoadOrCreateIdentity, SecondCallLoadsPrivateFiles) {
  const TemporaryFolder directory;
  const auto first = LoadOrCreateIdentity(directory / "tls");
  ASSERT_OK_AND_ASSIGN(const auto second, LoadOrCreateIdentity(directory / "tls"));
  EXPECT_EQ(first->fingerprint, second.fingerprint);
  EXPECT_FALSE(second.created);
  EXPECT_EQ(ModeOf(directory / "tls/server.key"), 0600u);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "tls")) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 2) << "something temporary was left";
}

TEST(LoadOrCreateIdentity, LoneKeyIsReplacedLoneCertificateFails) {
  const TemporaryFolder directory;
  ASSERT_THAT(LoadOrCreateIdentity(directory / "tls"), IsOk());
  std::filesystem::remove(directory / "tls/server.crt");
  EXPECT_THAT(LoadOrCreateIdentity(directory / "tls"), IsOk());
  std::filesystem::remove(directory / "tls/server.key");
  EXPECT_THAT(LoadOrCreateIdentity(directory / "tls"),
              FailsWith(kFailedPrecondition, "server.key is missing"));
}

TEST(LoadIdentity, InvalidFileIsNamed) {
  const TemporaryFolder directory;
  ASSERT_THAT(LoadOrCreateIdentity(directory / "a"), IsOk());
  ASSERT_THAT(LoadOrCreateIdentity(directory / "b"), IsOk());
  const std::string certificate = directory / "a/server.crt", key = directory / "a/server.key";
  const std::string text = directory.Write("text", "hello"), none = directory / "none";
  for (const auto& [first, second, part] :
       {std::tuple{none, key, "cannot read --tls-cert " + none + ": No such file or directory"},
        {certificate, none, "cannot read --tls-key"},
        {text, key, "holds no certificate in PEM format"},
        {certificate, text, "holds no private key in PEM format"},
        {certificate, directory / "b/server.key", "is not the key of --tls-cert"}}) {
    EXPECT_THAT(LoadIdentity(first, second), FailsWith(kFailedPrecondition, part));
  }
}

// Certificate files: root signs middle, middle signs leaf.
class CertificateChainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeAuthority(folder_.path(), "root");
    folder_.Write("ca.ext", "basicConstraints=critical,CA:TRUE\n");
    OpenSsl(folder_.path(),
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout middle.key -out "
            "middle.csr -subj /CN=middle");
    OpenSsl(folder_.path(),
            "x509 -req -in middle.csr -CA root.crt -CAkey root.key -CAcreateserial -out "
            "middle.crt -days 2 -extfile ca.ext");
    MakeClient(folder_.path(), "leaf", "middle", 2);
  }

  std::string Text(const std::string& name) const { return Contents(folder_ / name); }

  absl::StatusOr<TlsIdentity> Load(const std::string& certificates,
                                   const std::string& key = "leaf.key") const {
    return LoadIdentity(folder_.Write("chain.pem", certificates), folder_ / key);
  }

  const TemporaryFolder folder_;
};

TEST_F(CertificateChainTest, OnlyAnOrderedChainIsAccepted) {
  EXPECT_THAT(Load(Text("leaf.crt")), IsOk());
  EXPECT_THAT(Load(Text("leaf.crt") + Text("middle.crt") + Text("root.crt")), IsOk());
  // An issuer of the right name with another key.
  std::filesystem::create_directories(folder_ / "twin");
  MakeAuthority(folder_ / "twin", "middle");
  for (const auto& [chain, number] :
       {std::pair{Text("leaf.crt") + Text("root.crt"), "number 2 has not issued number 1"},
        {Text("leaf.crt") + Text("middle.crt") + Text("middle.crt"), "number 3 has not issued"},
        {Text("leaf.crt") + Text("leaf.crt"), "number 2 has not issued number 1"},
        {Text("leaf.crt") + Text("twin/middle.crt"), "number 2"},
        {Text("middle.crt") + Text("leaf.crt"), "is not the key"}}) {
    EXPECT_THAT(Load(chain), FailsWith(kFailedPrecondition, number));
  }
}

TEST_F(CertificateChainTest, DamagedCertificateIsRefused) {
  const std::string middle = Text("middle.crt");
  std::string cut = middle;
  cut.erase(100, 7);
  for (const std::string& damaged : {cut, middle.substr(0, middle.size() - 5), middle.substr(1)}) {
    EXPECT_THAT(
        Load(Text("leaf.crt") + damaged),
        FailsWith(kFailedPrecondition, "holds a damaged certificate in PEM format, number 2"));
    const std::string authorities =
        folder_.Write("authorities.pem", Text("root.crt") + damaged + Text("leaf.crt"));
    EXPECT_THAT(LoadAuthorities("--client-ca", authorities),
                FailsWith(kFailedPrecondition,
                          "--client-ca " + authorities + " holds a damaged certificate"));
  }
}

// As some tools write them; the chain must not be served twice.
TEST_F(CertificateChainTest, KeyAndChainMayShareFile) {
  const std::string all =
      folder_.Write("all.pem", Text("leaf.key") + Text("leaf.crt") + Text("middle.crt"));
  ASSERT_OK_AND_ASSIGN(const auto identity, LoadIdentity(all, all));
  EXPECT_THAT(identity.key_pem, ::testing::Not(::testing::HasSubstr("CERTIFICATE")));
}

TEST_F(CertificateChainTest, ClientOnlyPurposeOrUnsupportedKeyIsRefused) {
  for (const std::string purpose : {"clientAuth", "clientAuth,serverAuth"}) {
    OpenSsl(folder_.path(), absl::StrCat("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
                                         "-nodes -keyout k.key -out k.crt -subj /CN=k -days 2 "
                                         "-addext extendedKeyUsage=",
                                         purpose));
    if (purpose != "clientAuth") {
      EXPECT_THAT(Load(Text("k.crt"), "k.key"), IsOk());
      continue;
    }
    EXPECT_THAT(Load(Text("k.crt"), "k.key"),
                FailsWith(kFailedPrecondition, "chain.pem is not a server's certificate"));
  }
  OpenSsl(folder_.path(), "dsaparam -genkey -out dsa.key 2048");
  OpenSsl(folder_.path(), "req -x509 -new -key dsa.key -out dsa.crt -subj /CN=dsa -days 2");
  EXPECT_THAT(Load(Text("dsa.crt"), "dsa.key"),
              FailsWith(kFailedPrecondition, "Ed448, but is of DSA"));
}

TEST_F(CertificateChainTest, WrongDatesSayWhatToDo) {
  MakeEarly(folder_.path(), "early", "root");
  const auto early = Load(Text("early.crt"), "early.key");
  EXPECT_THAT(early, FailsWith(kFailedPrecondition, "is not valid before "));
  EXPECT_THAT(early, FailsWith(kFailedPrecondition,
                               ": set the clock if it is wrong, otherwise replace it by one that "
                               "is valid now"));
  // The daemon's own, with the clock set back.
  const std::string tls = folder_ / "tls";
  std::filesystem::create_directory(tls);
  std::filesystem::copy_file(folder_ / "early.crt", tls + "/server.crt");
  std::filesystem::copy_file(folder_ / "early.key", tls + "/server.key");
  EXPECT_THAT(LoadOrCreateIdentity(tls),
              FailsWith(kFailedPrecondition,
                        absl::StrCat("otherwise delete it and ", tls,
                                     "/server.key and start again to have both created again")));
  // One that has expired is loaded: tls_test.cc has what is said of it.
  MakeClient(folder_.path(), "late", "root", -1);
  ASSERT_OK_AND_ASSIGN(const auto late, Load(Text("late.crt"), "late.key"));
  EXPECT_LT(late.not_after, absl::Now());
}

TEST_F(CertificateChainTest, ExpiresWithEarliestCertificate) {
  MakeClient(folder_.path(), "long", "middle", 9);
  const auto alone = Load(Text("long.crt"), "long.key");
  ASSERT_OK_AND_ASSIGN(const auto chain, Load(Text("long.crt") + Text("middle.crt"), "long.key"));
  EXPECT_GT(alone->not_after, absl::Now() + absl::Hours(8 * 24));
  EXPECT_LT(chain.not_after, absl::Now() + absl::Hours(3 * 24));
}

TEST_F(CertificateChainTest, AuthoritiesNeedOneValidCertificate) {
  MakeClient(folder_.path(), "late", "root", -1);
  MakeEarly(folder_.path(), "early", "root");
  const std::string path = folder_.Write("a.pem", Text("late.crt") + Text("early.crt"));
  EXPECT_THAT(LoadAuthorities("--client-ca", path),
              FailsWith(kFailedPrecondition,
                        "must hold an authority that is valid now, but all of them (2)"));
  folder_.Write("a.pem", Text("late.crt") + Text("early.crt") + Text("root.crt"));
  EXPECT_THAT(LoadAuthorities("--client-ca", path), IsOk());
}

}  // namespace
}  // namespace privatemail::testing
