// Inputs of releases in tests: random rows and a funded ledger.
#ifndef PRIVATEMAIL_TESTS_TESTING_RELEASE_INPUTS_H_
#define PRIVATEMAIL_TESTS_TESTING_RELEASE_INPUTS_H_

#include <memory>
#include <random>

#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/ledger.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {

inline constexpr char kUuid[] = "4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5";

// `n` x `dim` standard normal values.
inline FloatMatrix NormalRows(int n, int dim, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  return FloatMatrix::NullaryExpr(n, dim, [&] { return normal(bits); });
}

// A ledger with a grant of epsilon 100 and delta .1 for the collection kUuid.
struct FundedLedger {
  TemporaryFolder folder;
  std::unique_ptr<Ledger> ledger = *Ledger::Open(folder / "ledger");

  FundedLedger() { EXPECT_THAT(ledger->Grant(kUuid, {100, .1}), IsOk()); }
};

// release: of one target, by StatusOr<Release>(BitSource&). The last failure before success is in
// the middle of the noise.
template <typename ReleaseFn>
void ExpectFailureWhileSamplingStaysCharged(const FundedLedger& funded, const ReleaseFn& release) {
  for (int calls = 0; calls < 100; ++calls) {
    const int64_t before = funded.ledger->Show(kUuid)->releases;
    FailingBits bits(calls);
    const auto released = release(bits);
    if (released.ok()) {
      EXPECT_GE(before, 1) << "a release that failed while noise was drawn must stay charged";
      return;
    }
    if (funded.ledger->Show(kUuid)->releases > before) {
      EXPECT_THAT(released, FailsWith(absl::StatusCode::kUnavailable, "the ledger was charged"));
    }
  }
  ADD_FAILURE() << "no release succeeded";
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_TESTING_RELEASE_INPUTS_H_
