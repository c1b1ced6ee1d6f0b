// Certificates of one server, one after the other.
#ifndef PRIVATEMAIL_TESTS_E2E_LOAD_CERTIFICATES_H_
#define PRIVATEMAIL_TESTS_E2E_LOAD_CERTIFICATES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace privatemail::e2e {

// An authority and a few certificates that it signed for 127.0.0.1, made by the openssl command.
// Thread-safe but for Serve.
class Certificates {
 public:
  // In the folder, which must be there.
  static absl::StatusOr<Certificates> Make(const std::string& folder);

  // PEM: whoever trusts it trusts every certificate that is served.
  std::string authority() const { return folder_ + "/authority.crt"; }
  // PEM, what the daemon is to read.
  std::string served() const { return folder_ + "/served.crt"; }
  std::string served_key() const { return folder_ + "/served.key"; }

  // Puts certificate number `number`, modulo how many there are, and its key in place of what is
  // served.
  absl::Status Serve(int number) const;

  // As --trust takes it.
  const std::string& FingerprintOf(int number) const;

 private:
  explicit Certificates(std::string folder) : folder_(std::move(folder)) {}

  absl::Status MakeServer(int number);

  std::string folder_;
  std::vector<std::string> fingerprints_;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_LOAD_CERTIFICATES_H_
