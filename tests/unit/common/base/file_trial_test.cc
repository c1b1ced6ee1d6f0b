#include "common/base/file_trial.h"

#include <unistd.h>

#include <csignal>

#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

constexpr char kLate[] =
    "a.onnx: expected a model, got one that could not be tried within the time";

int Hang() {
  for (;;) ::pause();
}

TEST(FileTrial, ForkReportsTheStatusOfItsTrial) {
  const TrialLimits limits = {.bytes = 1 << 30, .seconds = 60};
  for (const absl::Status& status : {absl::OkStatus(), absl::InvalidArgumentError("damaged")}) {
    const auto run = [&] { return ReportTrial(limits, [&] { return status; }); };
    EXPECT_EQ(TryInFork(run, 60, "a.onnx", "a model"), status);
  }
}

// It waits for a lock of a lost thread, say, and never comes to ReportTrial.
TEST(FileTrial, ForkThatHangsBeforeItsTrialEndsInTime) {
  EXPECT_THAT(TryInFork(Hang, 1, "a.onnx", "a model"), FailsWith(kInvalid, kLate));
}

TEST(FileTrial, ForkThatNoAlarmEndsIsKilled) {
  const auto run = [] {
    ::signal(SIGALRM, SIG_IGN);
    return Hang();
  };
  EXPECT_THAT(TryInFork(run, 1, "a.onnx", "a model"), FailsWith(kInvalid, kLate));
}

TEST(FileTrial, CommandThatHangsIsKilled) {
  EXPECT_THAT(TryInChild({"sleep", "infinity"}, 1, "a.index", "an index"),
              FailsWith(kInvalid, "a.index: expected an index, got one that could not be tried"));
}

}  // namespace
}  // namespace privatemail::testing
