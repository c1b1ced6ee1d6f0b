#include "tests/e2e/load_certificates.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "tests/e2e/programs.h"

namespace privatemail::e2e {
namespace {

constexpr int kCertificates = 3;

// Returns standard output.
absl::StatusOr<std::string> OpenSsl(const std::vector<std::string>& arguments) {
  const Outcome outcome = Program(Join({"/usr/bin/openssl"}, arguments)).Wait();
  if (outcome.exit_code == 0) return outcome.out;
  return absl::InternalError(
      absl::StrCat("openssl ended with ", outcome.exit_code, ": ", outcome.err));
}

// Self-signed unless `more` names an authority.
absl::Status MakeCertificate(const std::string& path, const std::string& name,
                             const Command& more) {
  std::vector<std::string> arguments = {"req",         "-x509",       "-newkey",
                                        "ec",          "-pkeyopt",    "ec_paramgen_curve:P-256",
                                        "-nodes",      "-keyout",     path + ".key",
                                        "-out",        path + ".crt", "-subj",
                                        "/CN=" + name, "-days",       "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return OpenSsl(arguments).status();
}

absl::Status Replace(const std::string& from, const std::string& to) {
  PM_ASSIGN_OR_RETURN(const std::string content, ReadFile("certificate", from));
  return WriteFileAtomically(to, content, 0600);
}

}  // namespace

absl::StatusOr<Certificates> Certificates::Make(const std::string& folder) {
  Certificates made(folder);
  PM_RETURN_IF_ERROR(MakeCertificate(folder + "/authority", "authority", {}));
  for (int number = 0; number < kCertificates; ++number) {
    PM_RETURN_IF_ERROR(made.MakeServer(number));
  }
  PM_RETURN_IF_ERROR(made.Serve(0));
  return made;
}

absl::Status Certificates::MakeServer(int number) {
  const std::string path = absl::StrCat(folder_, "/", number);
  PM_RETURN_IF_ERROR(MakeCertificate(
      path, absl::StrCat("server ", number),
      {"-CA", authority(), "-CAkey", folder_ + "/authority.key", "-addext",
       "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"}));
  PM_ASSIGN_OR_RETURN(const std::string printed,
                      OpenSsl({"x509", "-in", path + ".crt", "-noout", "-fingerprint", "-sha256"}));
  const std::vector<std::string> parts = absl::StrSplit(printed, '=');
  const std::string digits = absl::StrReplaceAll(parts.back(), {{":", ""}, {"\n", ""}});
  fingerprints_.push_back(absl::AsciiStrToLower(digits));
  return absl::OkStatus();
}

absl::Status Certificates::Serve(int number) const {
  const std::string path = absl::StrCat(folder_, "/", number % kCertificates);
  PM_RETURN_IF_ERROR(Replace(path + ".key", served_key()));
  return Replace(path + ".crt", served());
}

const std::string& Certificates::FingerprintOf(int number) const {
  return fingerprints_[static_cast<size_t>(number % kCertificates)];
}

}  // namespace privatemail::e2e
