// A ledger to look at, with charges of a tenth.
#ifndef PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_ACCOUNTING_LEDGER_FIXTURE_H_
#define PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_ACCOUNTING_LEDGER_FIXTURE_H_

#include <string>

#include "privatemail/ledger.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {

inline constexpr char kUuid[] = "4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5";

inline Guarantee Costs(double epsilon, double delta) {
  return {
      .epsilon = epsilon, .delta = delta, .neighbours = "test", .proven = true, .source = "test"};
}

// A ledger with a grant of 1 and `charges` charges of .1.
inline void SpendTenths(const std::string& path, int charges) {
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  ASSERT_THAT(ledger->Grant(kUuid, {1, 1e-5}), IsOk());
  for (int i = 0; i < charges; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_ACCOUNTING_LEDGER_FIXTURE_H_
