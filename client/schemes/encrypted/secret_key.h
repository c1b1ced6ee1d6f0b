// The secret key of a session: key generation, encryption and decryption (PRIVACY.md section 9).
// Not installed.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_SECRET_KEY_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_SECRET_KEY_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/encrypted/secret_memory.h"
#include "common/lattice/scores.h"
#include "common/lattice/wire.h"

namespace privatemail::client {

// The bytes of a v1.EncryptedQuery.
struct EncryptedQuery {
  std::string seed;    // lattice::kSeedBytes
  std::string chunks;  // lattice::QueryChunkBytes
};

// A secret s, uniform in {-1, 0, 1}^N. Held by the client; private. Immutable, thread-safe.
// - No branch and no address depends on s, on errors, on messages or on what is decrypted; times
//   depend on sizes and on rejected random bits.
// - Integers only.
// - Everything secret is in SecretPages.
// Errors of all functions: FAILED_PRECONDITION in a forked process, UNAVAILABLE without random
// bits, RESOURCE_EXHAUSTED without memory.
class SecretKey {
 public:
  static absl::StatusOr<SecretKey> Generate(BitSource& bits);

  // The evaluation keys for chunks of `delta` dimensions, in the form of common/lattice/wire.h.
  absl::StatusOr<std::string> MakeEvaluationKeys(int delta, BitSource& bits) const;

  // Encrypts polynomials of kDegree centred values, one after another in `messages`. Seed and
  // errors are drawn afresh by each call, so that none meets a second message.
  absl::StatusOr<EncryptedQuery> EncryptQuery(const SecretArray<int64_t>& messages,
                                              BitSource& bits) const;

  // Decrypts `answers` (a multiple of kAnswerBytes): for each row of each answer
  // y = 2^4 b - a s modulo 2^20, in [-2^19, 2^19). ScoreOf says what it means. Any bytes do.
  absl::StatusOr<SecretArray<int32_t>> Decrypt(absl::string_view answers) const;

  absl::Status CheckProcess() const { return secret_.CheckProcess(); }

 private:
  SecretKey(SecretArray<int64_t> secret, SecretArray<int64_t> transform)
      : secret_(std::move(secret)), transform_(std::move(transform)) {}

  // Appends b = a s + e + message to `bytes`, with polynomial `index` of the seed as a. Call it
  // once for a seed and index.
  absl::Status Encrypt(const std::string& seed, lattice::SeedUse use, uint32_t index,
                       const int64_t* message, BitSource& bits, std::string* bytes) const;

  SecretArray<int64_t> secret_;
  SecretArray<int64_t> transform_;  // lattice::Transform of it
};

// The scale of a query's coefficients: q / (2 2^14 delta h).
double QueryScale(int delta);

// The cosine of a row and the target that decrypts to y.
inline double ScoreOf(int32_t y) {
  constexpr double kUnit =
      static_cast<double>(lattice::kHeadroomNumerator) /
      (static_cast<double>(lattice::kHeadroomDenominator) * (1 << (lattice::kAnswerBitsA - 1)));
  return y * kUnit;
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_SECRET_KEY_H_
