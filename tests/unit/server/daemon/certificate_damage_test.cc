// Damaged certificates, which are refused naming the file. certificate_test.cc cuts whole files.
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/rpc/pem.h"
#include "server/daemon/certificate.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

std::string Flip(std::string bytes, size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
  return bytes;
}

class CertificateDamageTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
};

std::string PemOf(const std::string& der) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio(bio, PEM_STRING_X509, "", reinterpret_cast<const unsigned char*>(der.data()),
                std::ssize(der));
  char* text = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(bio, &text));
  std::string pem(text, size);
  BIO_free(bio);
  return pem;
}

std::string DerOf(const std::string& pem) {
  const auto parsed = *ParseCertificates("sound", pem);
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(parsed.front().get(), &bytes);
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

// Flips the issuer, the subject, and the signature.
TEST_F(CertificateDamageTest, SelfSignedAuthorityIsRefused) {
  MakeAuthority(folder_.path(), "authority");
  const std::string path = folder_ / "authority.crt";
  std::string der = DerOf(Contents(path));
  const auto load = [&] { return LoadAuthorities("--client-ca", path); };
  ASSERT_THAT(load(), IsOk());
  const size_t issuer = der.find("authority");
  for (const size_t at : {issuer, der.find("authority", issuer + 1), der.size() - 1}) {
    ASSERT_LT(at, der.size());
    folder_.Write("authority.crt", PemOf(Flip(der, 8 * at)));
    EXPECT_THAT(load(),
                FailsWith(kFailedPrecondition, absl::StrCat("--client-ca ", path,
                                                            " holds a damaged certificate: its "
                                                            "signature of itself is not valid")));
  }
}

// The issuer is unknown, so only the dates can be checked.
TEST_F(CertificateDamageTest, UnreadableDateIsRefused) {
  MakeAuthority(folder_.path(), "authority");
  MakeClient(folder_.path(), "leaf", "authority", 2);
  std::string der = DerOf(Contents(folder_ / "leaf.crt"));
  const size_t date = der.find("Z\x17\x0d");  // the end of one, and tag and length of the next
  ASSERT_NE(date, std::string::npos);
  der[date + 4] = 'x';
  const std::string path = folder_.Write("leaf.crt", PemOf(der));
  EXPECT_THAT(
      LoadIdentity(path, folder_ / "leaf.key"),
      FailsWith(kFailedPrecondition, absl::StrCat("--tls-cert ", path,
                                                  " holds a damaged certificate: one of its dates "
                                                  "cannot be read")));
}

// Not damage: authorities change their keys this way.
TEST_F(CertificateDamageTest, AuthoritySignedWithOldKeyIsAccepted) {
  std::filesystem::create_directories(folder_ / "old");
  MakeAuthority(folder_ / "old", "authority");
  folder_.Write("ca.ext",
                "basicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\n"
                "authorityKeyIdentifier=keyid:always\n");
  OpenSsl(folder_.path(),
          "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout authority.key -out "
          "authority.csr -subj /CN=authority");
  OpenSsl(folder_.path(),
          "x509 -req -in authority.csr -CA old/authority.crt -CAkey old/authority.key "
          "-CAcreateserial -out authority.crt -days 2 -extfile ca.ext");
  MakeClient(folder_.path(), "leaf", "authority", 2);
  const std::string both = Contents(folder_ / "leaf.crt") + Contents(folder_ / "authority.crt");
  EXPECT_THAT(LoadIdentity(folder_.Write("chain.pem", both), folder_ / "leaf.key"), IsOk());
  EXPECT_THAT(LoadAuthorities("--client-ca", folder_ / "authority.crt"), IsOk());
}

}  // namespace
}  // namespace privatemail::testing
