// What becomes of a release when OpenSSL has no random bits: an error, at whichever call it comes.
#define OPENSSL_SUPPRESS_DEPRECATED  // the one way to a generator that fails on demand
#include "privatemail/bit_source.h"

#include <openssl/err.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <random>

#include "client/privacy/sampling/exact_sampling.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

int calls_left = 0;
int answer_of_failure = 0;

// Fills the buffer either way: what must not be taken for bits is there to be taken.
int Answer(unsigned char* bytes, int count) {
  static std::minstd_rand known;
  std::generate_n(bytes, count, [] { return static_cast<unsigned char>(known() >> 16); });
  return calls_left-- > 0 ? 1 : answer_of_failure;
}

// OpenSSL's generator works `calls` times and then answers 0, "failed", or -1, "not supported".
class FailingGenerator {
 public:
  explicit FailingGenerator(int calls, int answer = 0) {
    calls_left = calls;
    answer_of_failure = answer;
    EXPECT_EQ(RAND_set_rand_method(&method_), 1);
  }
  ~FailingGenerator() {
    RAND_set_rand_method(RAND_OpenSSL());
    ERR_clear_error();
  }
  FailingGenerator(const FailingGenerator&) = delete;
  FailingGenerator& operator=(const FailingGenerator&) = delete;

 private:
  RAND_METHOD method_{.seed = nullptr,
                      .bytes = Answer,
                      .cleanup = nullptr,
                      .add = nullptr,
                      .pseudorand = Answer,
                      .status = nullptr};
};

TEST(SecureBits, OfAGeneratorThatFailsAreAnErrorWithItsReason) {
  std::array<uint8_t, 16> bytes;
  for (const int answer : {0, -1}) {
    const FailingGenerator generator(0, answer);
    ERR_raise(ERR_LIB_RAND, RAND_R_ERROR_INSTANTIATING_DRBG);
    EXPECT_THAT(SecureBits().Fill(absl::MakeSpan(bytes)),
                FailsWith(kUnavailable, "no secure random bits: error:"));
  }
  EXPECT_THAT(SecureBits().Fill(absl::MakeSpan(bytes)), IsOk());
}

TEST(SecureBits, ThatFailLeaveASamplerWithoutADraw) {
  const FailingGenerator generator(0);
  SecureBits bits;
  EXPECT_THAT(SampleDiscreteGaussian(3, 100, bits), FailsWith(kUnavailable, "no secure random"));
  EXPECT_THAT(SampleDiscreteLaplace(3, 100, bits), FailsWith(kUnavailable, "no secure random"));
  EXPECT_THAT(SampleUniform({2, 3}, bits), FailsWith(kUnavailable, "no secure random"));
  EXPECT_THAT(SampleTruncatedGaussian({{.low = -9, .high = 9, .centre = 0}}, uint64_t{100}, bits),
              FailsWith(kUnavailable, "no secure random"));
}

// Several blocks of bits go into a release of 2,000 values: the generator may fail at any.
TEST(SecureBits, ThatFailLeaveAMechanismWithoutARelease) {
  const ReleaseShape shape{.values = 2000, .largest_value = 1};
  const Matrix values = Matrix::Zero(2000, 1);
  for (const int calls : {0, 1, 2, 5}) {
    for (const MechanismKind kind :
         {MechanismKind::kGaussian, MechanismKind::kLaplace, MechanismKind::kBoundedGaussian}) {
      SCOPED_TRACE(TraitsOf(kind).name);
      MechanismParameters parameters{.kind = kind, .epsilon = 1, .sensitivity = 1};
      if (TraitsOf(kind).TakesDelta()) parameters.delta = 1e-5;
      if (kind == MechanismKind::kBoundedGaussian) parameters.box = {{-1}, {1}};
      ASSERT_OK_AND_ASSIGN(const auto mechanism, MakeMechanism(parameters, shape));
      const FailingGenerator generator(calls);
      SecureBits bits;
      EXPECT_THAT(mechanism->Release(values, bits),
                  FailsWith(kUnavailable, "no secure random bits"));
    }
  }
}

}  // namespace
}  // namespace privatemail::client
