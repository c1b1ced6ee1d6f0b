// Client credentials: certificates created by the openssl command, and access keys.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_DAEMON_CERTIFICATES_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_DAEMON_CERTIFICATES_H_

#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/daemon/certificate.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::testing {

inline void OpenSsl(const std::string& directory, const std::string& arguments) {
  const std::string command =
      absl::StrCat("cd ", directory, " && openssl ", arguments, " 2>/dev/null");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

// A self-signed authority: DIRECTORY/NAME.crt and .key.
inline void MakeAuthority(const std::string& directory, const std::string& name) {
  OpenSsl(directory,
          absl::StrCat("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes ", "-keyout ",
                       name, ".key -out ", name, ".crt -subj /CN=", name, " -days 2"));
}

// A certificate signed by `authority`; expired if `days` is negative.
inline void MakeClient(const std::string& directory, const std::string& name,
                       const std::string& authority, int days) {
  OpenSsl(directory, absl::StrCat("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ",
                                  name, ".key -out ", name, ".csr -subj /CN=", name));
  OpenSsl(directory,
          absl::StrCat("x509 -req -in ", name, ".csr -CA ", authority, ".crt -CAkey ", authority,
                       ".key -CAcreateserial -out ", name, ".crt -days ", days));
}

// A certificate that TLS rejects: 1024-bit RSA.
inline void MakeWeak(const std::string& directory, const std::string& name) {
  OpenSsl(directory, absl::StrCat("req -x509 -newkey rsa:1024 -nodes -keyout ", name, ".key -out ",
                                  name, ".crt -subj /CN=", name, " -days 2"));
}

// A certificate signed by `authority` and valid from tomorrow.
inline void MakeEarly(const std::string& directory, const std::string& name,
                      const std::string& authority) {
  const std::string tomorrow =
      absl::FormatTime("%Y%m%d%H%M%SZ", absl::Now() + absl::Hours(24), absl::UTCTimeZone());
  const std::string later =
      absl::FormatTime("%Y%m%d%H%M%SZ", absl::Now() + absl::Hours(48), absl::UTCTimeZone());
  MakeClient(directory, name, authority, 2);  // whose request is used
  std::ofstream(directory + "/ca.index").close();
  std::ofstream(directory + "/ca.conf")
      << "[ca]\ndefault_ca=d\n[d]\ndatabase=ca.index\nnew_certs_dir=.\nrand_serial=yes\n"
         "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n";
  OpenSsl(directory, absl::StrCat("ca -batch -config ca.conf -in ", name, ".csr -cert ", authority,
                                  ".crt -keyfile ", authority, ".key -out ", name,
                                  ".crt -notext -startdate ", tomorrow, " -enddate ", later));
}

inline std::shared_ptr<grpc::ChannelCredentials> Trusting(const std::string& certificate_pem) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = certificate_pem;
  return grpc::SslCredentials(options);
}

inline std::shared_ptr<grpc::ChannelCredentials> Presenting(const std::string& certificate_and_key,
                                                            const std::string& certificate_pem) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = certificate_pem;
  options.pem_cert_chain = Contents(certificate_and_key + ".crt");
  options.pem_private_key = Contents(certificate_and_key + ".key");
  return grpc::SslCredentials(options);
}

inline std::shared_ptr<grpc::ChannelCredentials> WithKey(
    const std::shared_ptr<grpc::ChannelCredentials>& channel, const std::string& key) {
  return grpc::CompositeChannelCredentials(channel, grpc::AccessTokenCredentials(key));
}

// The admin key that the first start over this data directory created.
inline std::string AdminKeyIn(const std::string& data_directory) {
  std::string key;
  std::ifstream(data_directory + "/admin.key") >> key;
  return key;
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_DAEMON_CERTIFICATES_H_
