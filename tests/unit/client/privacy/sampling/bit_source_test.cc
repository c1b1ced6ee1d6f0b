// SecureBits when OpenSSL's generator fails.
#define OPENSSL_SUPPRESS_DEPRECATED  // the one way to a generator that fails on demand
#include "client/privacy/sampling/bit_source.h"

#include <openssl/err.h>
#include <openssl/rand.h>

#include <array>

#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

int calls_left = 0;
int answer_of_failure = 0;

// Fills the buffer even on failure: a caller that ignores the status would use these bytes.
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

TEST(SecureBits, FailingGeneratorReturnsUnavailable) {
  std::array<uint8_t, 16> bytes;
  for (const int answer : {0, -1}) {
    const FailingGenerator generator(0, answer);
    ERR_raise(ERR_LIB_RAND, RAND_R_ERROR_INSTANTIATING_DRBG);
    EXPECT_THAT(SecureBits().Fill(absl::MakeSpan(bytes)),
                FailsWith(kUnavailable, "no secure random bits: error:"));
  }
  EXPECT_THAT(SecureBits().Fill(absl::MakeSpan(bytes)), IsOk());
}

}  // namespace
}  // namespace privatemail::client
