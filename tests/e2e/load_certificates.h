// Server certificates that replace each other under load.
#ifndef PRIVATEMAIL_TESTS_E2E_LOAD_CERTIFICATES_H_
#define PRIVATEMAIL_TESTS_E2E_LOAD_CERTIFICATES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace privatemail::e2e {

// An authority and a few certificates that it signed for 127.0.0.1, made with openssl. Thread-safe
// except for Serve.
class Certificates {
 public:
  // Creates the files in an existing folder.
  static absl::StatusOr<Certificates> Make(const std::string& folder);

  // PEM file of the authority.
  std::string authority() const { return folder_ + "/authority.crt"; }
  // PEM files for the daemon.
  std::string served() const { return folder_ + "/served.crt"; }
  std::string served_key() const { return folder_ + "/served.key"; }

  // Replaces served() and served_key() by certificate `number`, modulo the number of certificates.
  absl::Status Serve(int number) const;

  // In the form of --trust.
  const std::string& FingerprintOf(int number) const;

 private:
  explicit Certificates(std::string folder) : folder_(std::move(folder)) {}

  absl::Status MakeServer(int number);

  std::string folder_;
  std::vector<std::string> fingerprints_;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_LOAD_CERTIFICATES_H_
