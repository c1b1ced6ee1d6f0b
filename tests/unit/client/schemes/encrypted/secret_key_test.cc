// The outputs of the secret key, against samples that the test computes itself from the same random
// bytes, and against the distributions that PRIVACY.md section 9 assumes.
#include "client/schemes/encrypted/secret_key.h"

#include <bitset>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "client/schemes/encrypted/encrypted_client.h"
#include "tests/testing/encrypted_things.h"

namespace privatemail::client::secret_key_test {
namespace {

using lattice::kDegree;
using lattice::kModulus;
using lattice::kPolynomialBytes;
using Polynomial = std::vector<int64_t>;

class RecordingBits final : public BitSource {
 public:
  explicit RecordingBits(uint64_t seed) : bits_(seed) {}

  absl::Status Fill(absl::Span<uint8_t> bytes) override {
    const absl::Status status = bits_.Fill(bytes);
    handed_out.insert(handed_out.end(), bytes.begin(), bytes.end());
    return status;
  }

  std::vector<uint8_t> handed_out;

 private:
  SeededBits bits_;
};

// The secret that these bytes make: two bits each, -1 to 1, without those of value 3.
Polynomial SecretOf(const std::vector<uint8_t>& bytes) {
  Polynomial secret;
  for (size_t bit = 0; secret.size() < kDegree; bit += 2) {
    const int pair = (bytes[bit / 8] >> (bit % 8)) & 3;
    if (pair < 3) secret.push_back(pair - 1);
  }
  return secret;
}

int64_t Modulo(lattice::Wide value) {
  auto rest = static_cast<int64_t>(value % kModulus);
  if (rest > kModulus / 2) rest -= kModulus;
  if (rest < -(kModulus / 2)) rest += kModulus;
  return rest;
}

// b - a s, centred, of polynomial `index` of a seed.
Polynomial Phase(const std::string& seed, lattice::SeedUse use, uint32_t index, const char* bytes,
                 const Polynomial& secret) {
  Polynomial a(kDegree), b(kDegree), transform = secret;
  EXPECT_TRUE(lattice::ExpandSeed(seed, use, index, Shake128, a.data()));
  EXPECT_TRUE(lattice::ReadPolynomial(bytes, b.data())) << "a coefficient is q or more";
  lattice::Transform(transform.data());
  lattice::MultiplyPointwise(a.data(), transform.data(), a.data());
  lattice::InverseTransform(a.data());
  for (int i = 0; i < kDegree; ++i) b[i] = Modulo(lattice::Wide{b[i]} - a[i]);
  return b;
}

// factor s(X^power), coefficient by coefficient from powers of -1.
Polynomial Image(const Polynomial& secret, int64_t power, int64_t factor) {
  Polynomial image(kDegree);
  for (int64_t i = 0; i < kDegree; ++i) {
    const int64_t turns = i * power / kDegree;
    image[i * power % kDegree] += (turns % 2 == 0 ? factor : -factor) * secret[i];
  }
  return image;
}

Polynomial Minus(const Polynomial& x, const Polynomial& y) {
  Polynomial difference(kDegree);
  for (int i = 0; i < kDegree; ++i) difference[i] = Modulo(lattice::Wide{x[i]} - y[i]);
  return difference;
}

// The errors of the evaluation keys.
std::vector<Polynomial> ErrorsOf(const std::string& keys, int delta, const Polynomial& secret) {
  const std::string seed = keys.substr(0, lattice::kSeedBytes);
  std::vector<Polynomial> errors;
  const int levels = static_cast<int>(std::log2(delta));
  for (int level = 12 - levels; level <= 11; ++level) {
    for (int digit = 0; digit < 2; ++digit) {
      const auto index = static_cast<uint32_t>(errors.size());
      const Polynomial phase =
          Phase(seed, lattice::SeedUse::kKeys, index,
                keys.data() + lattice::kSeedBytes + index * kPolynomialBytes, secret);
      errors.push_back(
          Minus(phase, Image(secret, (int64_t{1} << level) + 1, int64_t{1} << (13 + 14 * digit))));
    }
  }
  return errors;
}

// round(S v_i) X^-i of each chunk, by long double.
std::vector<Polynomial> MessagesOf(const Eigen::RowVectorXf& target, int delta) {
  long double square = 0;
  for (const float value : target) square += static_cast<long double>(value) * value;
  const long double scale =
      static_cast<long double>(kModulus) / (32768.L * delta * 1.01L) / std::sqrt(square);
  std::vector<Polynomial> messages;
  for (int i = 0; i < target.size(); ++i) {
    if (i % delta == 0) messages.emplace_back(kDegree);
    const auto value = static_cast<int64_t>(std::llround(target[i] * scale));
    if (i % delta == 0) {
      messages.back()[0] = value;
    } else {
      messages.back()[kDegree - i % delta] = -value;
    }
  }
  return messages;
}

EncryptedClient ClientOf(int dim, int delta) {
  return *EncryptedClient::Create(EncryptedThings(NormalRows(5, dim, 1), delta).Collection());
}

// Moments of `count` errors: each statistic is beyond its bound with probability below 10^-9 by
// Chebyshev's or Hoeffding's inequality or the normal law (6.1 deviations).
void ExpectErrorLaw(const std::vector<Polynomial>& errors) {
  double count = 0, sum = 0, squares = 0, fourth = 0, zeros = 0;
  std::set<int64_t> values;
  for (const Polynomial& polynomial : errors) {
    for (const int64_t error : polynomial) {
      ASSERT_LE(std::abs(error), 21);
      const auto e = static_cast<double>(error);
      count += 1, sum += e, squares += e * e, fourth += e * e * e * e;
      zeros += error == 0 ? 1 : 0;
      values.insert(error);
    }
  }
  constexpr double kVariance = 10.5, kFourth = 3 * kVariance * kVariance - 42. / 8;
  constexpr double kDeviations = 6.1;
  EXPECT_NEAR(sum / count, 0, kDeviations * std::sqrt(kVariance / count));
  EXPECT_NEAR(squares / count, kVariance,
              kDeviations * std::sqrt((kFourth - kVariance * kVariance) / count));
  // The fourth moment of the fourth power is below 105 sigma^8.
  EXPECT_NEAR(fourth / count, kFourth,
              kDeviations * std::sqrt(105 * std::pow(kVariance, 4) / count));
  constexpr double kZero = .12238;  // 42 choose 21, by 2^42
  EXPECT_NEAR(zeros / count, kZero, kDeviations * std::sqrt(kZero / count));
  EXPECT_GE(values.size(), 20U);
}

// No two polynomials of errors are the same or correlated: their inner product has deviation
// 10.5 sqrt(N), and is beyond 7 of them with probability below 10^-10.
void ExpectIndependent(const std::vector<Polynomial>& errors) {
  for (size_t i = 0; i < errors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      int64_t product = 0;
      for (int at = 0; at < kDegree; ++at) product += errors[i][at] * errors[j][at];
      EXPECT_LT(std::abs(product), 7 * 10.5 * std::sqrt(kDegree)) << i << " and " << j;
    }
  }
}

TEST(SecretKey, KeysEncryptImagesOfTheSecretWithFreshErrors) {
  for (const int delta : {32, 256}) {
    RecordingBits bits(static_cast<uint64_t>(delta));
    const auto session = *EncryptedSession::Create(delta, bits);
    ASSERT_EQ(session->keys().size(), lattice::KeysBytes(delta));
    const Polynomial secret = SecretOf(bits.handed_out);
    const std::vector<Polynomial> errors = ErrorsOf(session->keys(), delta, secret);
    ExpectErrorLaw(errors);
    ExpectIndependent(errors);
  }
}

TEST(SecretKey, QueriesEncryptTheScaledTargetWithFreshErrors) {
  constexpr int kDelta = 64, kDim = 150;
  RecordingBits bits(3);
  const auto session = *EncryptedSession::Create(kDelta, bits);
  const Polynomial secret = SecretOf(bits.handed_out);
  const EncryptedClient client = ClientOf(kDim, kDelta);
  std::vector<Polynomial> errors;
  for (int query = 0; query < 8; ++query) {
    const Eigen::RowVectorXf target = 7 * NormalRows(1, kDim, 10 + query / 2);  // each one twice
    ASSERT_OK_AND_ASSIGN(const PreparedEncryptedQuery prepared,
                         client.Prepare(target, session, bits));
    const EncryptedQuery& request = prepared.request;
    const std::vector<Polynomial> messages = MessagesOf(target, kDelta);
    ASSERT_EQ(messages.size(), 3U);
    ASSERT_EQ(request.chunks.size(), 3 * kPolynomialBytes);
    for (uint32_t chunk = 0; chunk < 3; ++chunk) {
      errors.push_back(Minus(Phase(request.seed, lattice::SeedUse::kQuery, chunk,
                                   request.chunks.data() + chunk * kPolynomialBytes, secret),
                             messages[chunk]));
    }
  }
  ExpectErrorLaw(errors);
  ExpectIndependent(errors);
}

// The bits that make errors are no others than those that no other use has had.
TEST(SecretKey, ErrorsAreTheOnesOfTheirBits) {
  RecordingBits bits(4);
  const auto session = *EncryptedSession::Create(32, bits);
  const Polynomial secret = SecretOf(bits.handed_out);
  const Polynomial last = ErrorsOf(session->keys(), 32, secret).back();
  const size_t first = bits.handed_out.size() - 6 * kDegree;
  for (int i = 0; i < kDegree; ++i) {
    std::bitset<48> draw;
    for (size_t bit = 0; bit < 48; ++bit) {
      draw[bit] = bits.handed_out[first + static_cast<size_t>(i) * 6 + bit / 8] >> (bit % 8) & 1;
    }
    int expected = 0;
    for (size_t bit = 0; bit < 42; ++bit) expected += (bit < 21 ? 1 : -1) * (draw[bit] ? 1 : 0);
    ASSERT_EQ(last[i], expected) << i;
  }
}

// Each count of 40 secrets is binomial; beyond 6.5 deviations with probability below 10^-10.
TEST(SecretKey, SecretsAreUniformTernaryAndFreshForEachSession) {
  std::map<int64_t, double> counts;
  std::vector<Polynomial> secrets;
  constexpr int kSecrets = 40;
  for (int i = 0; i < kSecrets; ++i) {
    RecordingBits bits(static_cast<uint64_t>(100 + i));
    const auto session = *EncryptedSession::Create(32, bits);
    secrets.push_back(SecretOf(bits.handed_out));
    // The secret that keys were made with is this one.
    ExpectErrorLaw(ErrorsOf(session->keys(), 32, secrets.back()));
    for (const int64_t value : secrets.back()) ++counts[value];
  }
  const double all = kSecrets * kDegree;
  for (const int64_t value : {-1, 0, 1}) {
    EXPECT_NEAR(counts[value], all / 3, 6.5 * std::sqrt(all * 2 / 9)) << value;
  }
  for (int i = 1; i < kSecrets; ++i) {
    int64_t product = 0;
    for (int at = 0; at < kDegree; ++at) product += secrets[i][at] * secrets[i - 1][at];
    EXPECT_LT(std::abs(product), 7 * 2. / 3 * std::sqrt(kDegree));
  }
}

// b is uniform modulo q, so differences of b are, too: of two queries that shared a and secret they
// would be those of targets and errors, below 2^23. Each count of small differences is binomial
// with mean 2^-16 in 2,048; a false alarm needs four, probability below 10^-8.
TEST(SecretKey, NoTwoCiphertextsOfASessionShareTheirUniformPart) {
  constexpr int kDelta = 64, kDim = 128;
  SecureBits bits;
  const auto session = *EncryptedSession::Create(kDelta, bits);
  const EncryptedClient client = ClientOf(kDim, kDelta);
  const Eigen::RowVectorXf target = NormalRows(1, kDim, 1), other = NormalRows(1, kDim, 2);
  std::vector<Polynomial> sent;
  std::set<std::string> seeds = {session->keys().substr(0, lattice::kSeedBytes)};
  constexpr int kQueries = 20;
  for (int query = 0; query < kQueries; ++query) {
    const auto prepared = *client.Prepare(query % 3 == 0 ? other : target, session, bits);
    seeds.insert(prepared.request.seed);
    for (int chunk = 0; chunk < 2; ++chunk) {
      lattice::ReadPolynomial(prepared.request.chunks.data() + chunk * kPolynomialBytes,
                              sent.emplace_back(kDegree).data());
    }
  }
  EXPECT_EQ(seeds.size(), kQueries + 1U);
  for (size_t offset = lattice::kSeedBytes; offset < session->keys().size();
       offset += kPolynomialBytes) {
    lattice::ReadPolynomial(session->keys().data() + offset, sent.emplace_back(kDegree).data());
  }
  for (size_t i = 0; i < sent.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      int small = 0;
      for (const int64_t value : Minus(sent[i], sent[j])) small += std::abs(value) < 1 << 24;
      EXPECT_LT(small, 4) << i << " and " << j;
    }
  }
}

// Compares the highest 3 bits of the coefficients that hold the targets, over 300 queries for each
// of two targets. The chi-square statistics of both samples and of their difference have 7 degrees
// of freedom, of which 60 is exceeded with probability below 2 10^-10.
TEST(SecretKey, ReceivedBitsHaveOneLawForTwoTargets) {
  constexpr int kDelta = 32, kDim = 32, kQueries = 300, kBins = 8;
  SecureBits bits;
  const auto session = *EncryptedSession::Create(kDelta, bits);
  const EncryptedClient client = ClientOf(kDim, kDelta);
  Eigen::RowVectorXf one = Eigen::RowVectorXf::Zero(kDim), other = one;
  one[0] = 1, other.fill(-1);
  std::vector<std::vector<double>> counts(2, std::vector<double>(kBins));
  for (const auto& [which, target] : {std::pair{0, one}, {1, other}}) {
    for (int query = 0; query < kQueries; ++query) {
      const auto prepared = *client.Prepare(target, session, bits);
      EXPECT_EQ(prepared.request.chunks.size(), kPolynomialBytes);
      Polynomial b(kDegree);
      lattice::ReadPolynomial(prepared.request.chunks.data(), b.data());
      for (int i = 0; i < kDim; ++i) {
        const int64_t value = b[(kDegree - i) % kDegree] + kModulus / 2;
        ++counts[which][static_cast<size_t>(value * kBins / kModulus)];
      }
    }
  }
  const double expected = 1. * kQueries * kDim / kBins;
  double of_one = 0, of_other = 0, of_difference = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    of_one += std::pow(counts[0][bin] - expected, 2) / expected;
    of_other += std::pow(counts[1][bin] - expected, 2) / expected;
    of_difference += std::pow(counts[0][bin] - counts[1][bin], 2) / (2 * expected);
  }
  EXPECT_LT(of_one, 60);
  EXPECT_LT(of_other, 60);
  EXPECT_LT(of_difference, 60);
}

TEST(SecretKey, FailureOfTheBitsAtAnyCallIsReturned) {
  const EncryptedClient client = ClientOf(100, 32);
  const Eigen::RowVectorXf target = NormalRows(1, 100, 1);
  SecureBits secure;
  const auto session = *EncryptedSession::Create(32, secure);
  // The secret, the seed and 10 keys; a seed and 4 chunks. Rejection may need another block.
  for (int calls = 0; calls < 12; ++calls) {
    FailingBits bits(calls);
    EXPECT_THAT(EncryptedSession::Create(32, bits), FailsWith(kUnavailable, "no bits")) << calls;
  }
  for (int calls = 0; calls < 5; ++calls) {
    FailingBits bits(calls);
    EXPECT_THAT(client.Prepare(target, session, bits), FailsWith(kUnavailable, "no bits"));
  }
  FailingBits enough(5);
  EXPECT_THAT(client.Prepare(target, session, enough), IsOk());
}

}  // namespace
}  // namespace privatemail::client::secret_key_test
