#include "client/schemes/encrypted/secret_key.h"

#include <algorithm>

#include "absl/types/span.h"
#include "common/base/digests.h"
#include "common/base/status_macros.h"
#include "common/lattice/ring.h"

namespace privatemail::client {
namespace {

using lattice::kDegree;

// Fills `values` with -1, 0 and 1, uniformly: 2 bits each, of which 3 is rejected.
absl::Status SampleTernary(BitSource& bits, const SecretArray<int64_t>& values) {
  PM_ASSIGN_OR_RETURN(const auto drawn, SecretArray<uint8_t>::Allocate(kDegree / 2));
  size_t accepted = 0;
  while (accepted < values.size()) {
    PM_RETURN_IF_ERROR(bits.Fill(drawn.bytes()));
    for (const uint8_t byte : drawn) {
      for (int shift = 0; shift < 8 && accepted < values.size(); shift += 2) {
        const int draw = byte >> shift & 3;
        // The branch shows which draws were rejected, nothing of the others.
        if (draw == 3) continue;
        values[accepted++] = draw - 1;
      }
    }
  }
  return absl::OkStatus();
}

// The number of ones in the lowest 21 bits. Instead of std::popcount, which looks up a table where
// the processor need not have the instruction.
int64_t CountOnes21(uint64_t bits) {
  bits &= 0x1f'ffff;
  bits = (bits & 0x15'5555) + (bits >> 1 & 0x15'5555);
  bits = (bits & 0x13'3333) + (bits >> 2 & 0x13'3333);
  bits = (bits & 0x0f'0f0f) + (bits >> 4 & 0x0f'0f0f);
  return static_cast<int64_t>((bits + (bits >> 8) + (bits >> 16)) & 0xff);
}

// Adds to each value the number of ones in 21 bits minus that in 21 others.
absl::Status AddErrors(BitSource& bits, const SecretArray<int64_t>& values) {
  constexpr size_t kBytes = 6;  // of which 42 bits are used
  PM_ASSIGN_OR_RETURN(const auto drawn, SecretArray<uint8_t>::Allocate(kBytes * values.size()));
  PM_RETURN_IF_ERROR(bits.Fill(drawn.bytes()));
  const uint8_t* bytes = drawn.data();
  for (int64_t& value : values) {
    uint64_t draw = 0;
    for (size_t i = 0; i < kBytes; ++i) draw |= uint64_t{*bytes++} << (8 * i);
    value += CountOnes21(draw) - CountOnes21(draw >> 21);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DrawSeed(BitSource& bits) {
  std::string seed(lattice::kSeedBytes, '\0');
  PM_RETURN_IF_ERROR(
      bits.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(seed.data()), seed.size())));
  return seed;
}

// factor times the secret's image under X -> X^power, power odd.
void MapAndScale(const int64_t* secret, int64_t power, int64_t factor, int64_t* image) {
  for (int64_t i = 0; i < kDegree; ++i) {
    const int64_t exponent = i * power % (2 * kDegree);
    const bool wraps = exponent >= kDegree;  // X^kDegree is -1
    image[exponent - (wraps ? kDegree : 0)] = (wraps ? -factor : factor) * secret[i];
  }
}

}  // namespace

absl::StatusOr<SecretKey> SecretKey::Generate(BitSource& bits) {
  PM_ASSIGN_OR_RETURN(auto secret, SecretArray<int64_t>::Allocate(kDegree));
  PM_ASSIGN_OR_RETURN(auto transform, SecretArray<int64_t>::Allocate(kDegree));
  PM_RETURN_IF_ERROR(SampleTernary(bits, secret));
  std::copy(secret.begin(), secret.end(), transform.begin());
  lattice::Transform(transform.data());
  return SecretKey(std::move(secret), std::move(transform));
}

absl::StatusOr<std::string> SecretKey::MakeEvaluationKeys(int delta, BitSource& bits) const {
  PM_RETURN_IF_ERROR(CheckProcess());
  PM_ASSIGN_OR_RETURN(const std::string seed, DrawSeed(bits));
  std::string keys = seed;
  keys.reserve(lattice::KeysBytes(delta));
  PM_ASSIGN_OR_RETURN(const auto message, SecretArray<int64_t>::Allocate(kDegree));
  const int levels = lattice::CountLevels(delta);
  uint32_t index = 0;
  for (int level = lattice::kLogDegree + 1 - levels; level <= lattice::kLogDegree; ++level) {
    for (int digit = 0; digit < lattice::kDigits; ++digit, ++index) {
      MapAndScale(secret_.data(), (int64_t{1} << level) + 1,
                  int64_t{1} << (lattice::kDroppedBits + digit * lattice::kDigitBits),
                  message.data());
      PM_RETURN_IF_ERROR(
          Encrypt(seed, lattice::SeedUse::kKeys, index, message.data(), bits, &keys));
    }
  }
  return keys;
}

absl::StatusOr<EncryptedQuery> SecretKey::EncryptQuery(const SecretArray<int64_t>& messages,
                                                       BitSource& bits) const {
  PM_RETURN_IF_ERROR(CheckProcess());
  EncryptedQuery query;
  PM_ASSIGN_OR_RETURN(query.seed, DrawSeed(bits));
  const size_t chunks = messages.size() / kDegree;
  query.chunks.reserve(chunks * lattice::kPolynomialBytes);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    PM_RETURN_IF_ERROR(Encrypt(query.seed, lattice::SeedUse::kQuery, static_cast<uint32_t>(chunk),
                               messages.data() + chunk * kDegree, bits, &query.chunks));
  }
  return query;
}

absl::Status SecretKey::Encrypt(const std::string& seed, lattice::SeedUse use, uint32_t index,
                                const int64_t* message, BitSource& bits, std::string* bytes) const {
  PM_ASSIGN_OR_RETURN(const auto b, SecretArray<int64_t>::Allocate(kDegree));
  if (!lattice::ExpandSeed(seed, use, index, Shake128, b.data())) {
    return absl::UnavailableError("a seed cannot be expanded: SHAKE128 failed");
  }
  lattice::MultiplyPointwise(b.data(), transform_.data(), b.data());
  lattice::InverseTransform(b.data());
  PM_RETURN_IF_ERROR(AddErrors(bits, b));
  for (size_t i = 0; i < kDegree; ++i) b[i] = lattice::Centre(b[i] + message[i]);
  lattice::AppendPolynomial(b.data(), bytes);
  return absl::OkStatus();
}

absl::StatusOr<SecretArray<int32_t>> SecretKey::Decrypt(absl::string_view answers) const {
  PM_RETURN_IF_ERROR(CheckProcess());
  const size_t blocks = answers.size() / lattice::kAnswerBytes;
  PM_ASSIGN_OR_RETURN(auto decrypted, SecretArray<int32_t>::Allocate(blocks * kDegree));
  PM_ASSIGN_OR_RETURN(const auto a, SecretArray<int64_t>::Allocate(kDegree));
  PM_ASSIGN_OR_RETURN(const auto b, SecretArray<int64_t>::Allocate(kDegree));
  int32_t* score = decrypted.data();
  for (size_t block = 0; block < blocks; ++block) {
    lattice::ReadAnswer(answers.data() + block * lattice::kAnswerBytes, a.data(), b.data());
    // At most 2^20 kDegree in absolute value, so that it is exact modulo q.
    lattice::Transform(a.data());
    lattice::MultiplyPointwise(a.data(), transform_.data(), a.data());
    lattice::InverseTransform(a.data());
    constexpr int64_t kHalf = int64_t{1} << (lattice::kAnswerBitsA - 1);
    for (size_t i = 0; i < kDegree; ++i) {
      const int64_t phase = (b[i] << (lattice::kAnswerBitsA - lattice::kAnswerBitsB)) - a[i];
      *score++ = static_cast<int32_t>(((phase + kHalf) & (2 * kHalf - 1)) - kHalf);
    }
  }
  return decrypted;
}

double QueryScale(int delta) {
  return static_cast<double>(lattice::kModulus) * lattice::kHeadroomDenominator /
         (2.0 * (1 << lattice::kItemScaleBits) * delta * lattice::kHeadroomNumerator);
}

}  // namespace privatemail::client
