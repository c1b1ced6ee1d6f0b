// Ledgers of tests: in a folder of their own, with charges of .1.
#ifndef PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_ACCOUNTING_LEDGER_FIXTURE_H_
#define PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_ACCOUNTING_LEDGER_FIXTURE_H_

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "privatemail/ledger.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client {

class LedgerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Ledger> Open() const { return Ledger::Open(path_).value(); }
  std::unique_ptr<Ledger> OpenGranted(const Budget& budget,
                                      Accounting accounting = Accounting::kBasic) const {
    std::unique_ptr<Ledger> ledger = Open();
    EXPECT_THAT(ledger->Grant(kUuid, budget, accounting), IsOk());
    return ledger;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "ledger";
};

inline constexpr char kServer[] = "server";

inline Guarantee Costs(double epsilon, double delta) {
  return {
      .epsilon = epsilon, .delta = delta, .neighbours = "test", .proven = true, .source = "test"};
}

inline Guarantee Gaussian(double epsilon, double delta, double mu) {
  Guarantee guarantee = Costs(epsilon, delta);
  guarantee.gaussian_mu = mu;
  return guarantee;
}

// Grants 1 and charges .1 `charges` times.
inline void SpendTenths(const std::string& path, int charges) {
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  ASSERT_THAT(ledger->Grant(kUuid, {1, 1e-5}), IsOk());
  for (int i = 0; i < charges; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
}

// Runs spend(ledger, i) in a process of its own for each i below `processes`, all at once.
inline void SpendInProcesses(const std::string& path, int processes,
                             const std::function<void(Ledger&, int)>& spend) {
  std::vector<pid_t> children;
  for (int child = 0; child < processes; ++child) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const auto ledger = Ledger::Open(path);
      if (!ledger.ok()) _exit(1);
      spend(**ledger, child);
      _exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int state = 0;
    ASSERT_EQ(waitpid(pid, &state, 0), pid);
    EXPECT_EQ(state, 0);
  }
}

// In place: the file keeps its inode.
inline void Overwrite(const std::string& from, const std::string& to) {
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_ACCOUNTING_LEDGER_FIXTURE_H_
