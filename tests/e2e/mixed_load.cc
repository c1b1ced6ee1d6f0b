// A load of everything that callers and operators do with a daemon, all at once.
//
// Callers: 16 searchers, two writers, a builder, and one each that revokes keys, replaces the
// certificate, and restores snapshots; more than the daemon admits at a time. Checks:
//   - every call is answered or refused as documented
//   - all acknowledged writes are stored, and the audit log agrees with the callers
//   - memory does not grow
//   - SIGTERM ends the daemon with 0 and without an error line or a sanitizer's report
// Prints one line, and faults on standard error; exits with 0 if there are none. mixed_load.sh runs
// it for 10 minutes on a daemon with sanitizers.
#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/load_callers.h"
#include "tests/e2e/load_scene.h"
#include "tests/e2e/writers.h"
#include "tests/testing/postgres_server.h"

namespace privatemail::e2e {
namespace {

constexpr int kSearchers = 16;
constexpr double kMaxGrowth = .05;
constexpr double kMinRefused = .01;  // share of the answered calls
// Before, a process still fills its pools and caches.
constexpr int kMinSecondsToJudgeMemory = 60;

// Samples of a process's resident memory.
class ResidentMemory {
 public:
  explicit ResidentMemory(pid_t process) : process_(process) {}

  // To be called at equal intervals. A process that has ended has 0.
  void Sample() {
    std::ifstream status(absl::StrCat("/proc/", process_, "/status"));
    double kibibytes = 0;
    for (std::string word; status >> word;) {
      if (word == "VmRSS:") status >> kibibytes;
    }
    mebibytes_.push_back(kibibytes / 1024);
  }

  double latest_mebibytes() const { return mebibytes_.empty() ? 0 : mebibytes_.back(); }

  // Relative rise of the least-squares line through the second half of the samples, from its first
  // to its last sample; 0 for fewer than 4 samples.
  double SecondHalfGrowth() const {
    const size_t count = mebibytes_.size() - mebibytes_.size() / 2;
    if (mebibytes_.size() < 4) return 0;
    const double* const half = mebibytes_.data() + mebibytes_.size() / 2;
    const double middle = static_cast<double>(count - 1) / 2;
    double mean = 0, products = 0, squares = 0;
    for (size_t i = 0; i < count; ++i) {
      const double time = static_cast<double>(i) - middle;
      mean += half[i] / static_cast<double>(count);
      products += time * half[i];
      squares += time * time;
    }
    const double slope = products / squares;
    return 2 * middle * slope / (mean - middle * slope);
  }

 private:
  const pid_t process_;
  std::vector<double> mebibytes_;
};

struct Options {
  std::string program = PRIVATEMAILD;
  std::string store = "sqlite";
  int seconds = 15;
};

// Runs all callers for `seconds`, sampling the daemon's memory every second.
void Load(Scene* scene, std::vector<Writer>* writers, int seconds, Achievements* achievements,
          ResidentMemory* memory) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kSearchers; ++i) threads.emplace_back([=] { Search(scene, i); });
  for (size_t i = 0; i < writers->size(); ++i) {
    threads.emplace_back([=] { WriteAndRead(scene, &(*writers)[i], static_cast<int>(i)); });
  }
  threads.emplace_back([=] { Build(scene, achievements); });
  threads.emplace_back([=] { SnapshotAndRestore(scene, achievements); });
  threads.emplace_back([=] { ChangeKeys(scene, achievements); });
  threads.emplace_back([=] { ChangeCertificates(scene, achievements); });
  const auto start = std::chrono::steady_clock::now();
  for (int second = 1; second <= seconds && scene->GoesOn(); ++second) {
    std::this_thread::sleep_until(start + std::chrono::seconds(second));
    memory->Sample();
  }
  scene->End();
  for (std::thread& thread : threads) thread.join();
}

void CheckStored(Scene* scene, std::vector<Writer>* writers) {
  const auto stored = StoredItems(scene->admin(), "things");
  if (!stored.ok()) return scene->outcomes().AddFault(stored.status().ToString());
  for (Writer& writer : *writers) {
    for (const std::string& fault : writer.Check(*stored)) scene->outcomes().AddFault(fault);
  }
}

void EndDaemon(Scene* scene) {
  scene->daemon().program().Signal(SIGTERM);
  const Outcome outcome = scene->daemon().program().Wait();
  if (outcome.exit_code != 0) {
    scene->outcomes().AddFault(absl::StrCat("the daemon ended with ", outcome.exit_code));
  }
  for (const absl::string_view line : absl::StrSplit(outcome.err, '\n')) {
    if (absl::StrContains(line, " ERROR ") || absl::StrContains(line, "Sanitizer") ||
        absl::StrContains(line, "runtime error")) {
      scene->outcomes().AddFault(absl::StrCat("the daemon said: ", outcome.err));
      return;
    }
  }
}

void JudgeMemory(const ResidentMemory& memory, int seconds, Outcomes* outcomes) {
  if (seconds < kMinSecondsToJudgeMemory || memory.SecondHalfGrowth() < kMaxGrowth) return;
  outcomes->AddFault("the daemon's memory grows");
}

// Every kind of call must have happened.
void CheckComplete(const Achievements& achieved, Outcomes* outcomes) {
  // Without refusals the daemon was not at its limit.
  if (outcomes->refused_as_busy() < kMinRefused * static_cast<double>(outcomes->answered())) {
    outcomes->AddFault("too few calls were refused as busy");
  }
  const std::pair<const char*, int64_t> done[] = {
      {"build", achieved.builds},
      {"refusal of a second build", achieved.second_builds},
      {"revocation of a key", achieved.revoked_keys},
      {"change of the certificate", achieved.certificates},
      {"snapshot", achieved.snapshots}};
  for (const auto& [what, count] : done) {
    if (count == 0) outcomes->AddFault(absl::StrCat("there was no ", what));
  }
}

void Report(const Options& options, const std::vector<Writer>& writers,
            const Achievements& achieved, const ResidentMemory& memory, const Outcomes& outcomes) {
  int64_t items = 0;
  for (const Writer& writer : writers) items += writer.acknowledged_items();
  for (const std::string& fault : outcomes.first_faults()) {
    std::fprintf(stderr, "fault: %s\n", fault.c_str());
  }
  std::puts(absl::StrFormat(
                "mixed load on %s for %d s: %d calls answered (%.0f a second) and %d refused as "
                "busy; %d builds, %d keys revoked, %d certificates changed, %d snapshots restored, "
                "%d items written and checked; memory %.0f MiB, %+.2f %% in the second half; %d "
                "faults (%s)",
                options.store, options.seconds, outcomes.answered(),
                static_cast<double>(outcomes.answered()) / options.seconds,
                outcomes.refused_as_busy(), achieved.builds.load(), achieved.revoked_keys.load(),
                achieved.certificates.load(), achieved.snapshots.load(), items,
                memory.latest_mebibytes(), 100 * memory.SecondHalfGrowth(), outcomes.faults(),
                outcomes.Summary())
                .c_str());
}

int Run(const Options& options) {
  std::optional<PostgresServer> postgres;
  if (options.store == "postgres") postgres.emplace();
  const auto started = Scene::Start(options.program, postgres ? postgres->NewDatabase() : "");
  if (!started.ok()) {
    std::fprintf(stderr, "%s\n", started.status().ToString().c_str());
    return 1;
  }
  Scene& scene = **started;
  Outcomes& outcomes = scene.outcomes();
  std::vector<Writer> writers = {{"a", "things", 1}, {"b", "things", 2}};
  Achievements achieved;
  ResidentMemory memory(scene.daemon().program().pid());
  Load(&scene, &writers, options.seconds, &achieved, &memory);
  outcomes.CompareWith(scene.audit_log());
  CheckStored(&scene, &writers);
  EndDaemon(&scene);
  JudgeMemory(memory, options.seconds, &outcomes);
  CheckComplete(achieved, &outcomes);
  Report(options, writers, achieved, memory, outcomes);
  return outcomes.faults() == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Loads a daemon with everything at once and says what became of it", "mixed_load");
  app.add_option("--daemon", options.program, "Program to load")->capture_default_str();
  app.add_option("--store", options.store, "Where it keeps its collections")
      ->check(CLI::IsMember({"sqlite", "postgres"}))
      ->capture_default_str();
  app.add_option(
         "--seconds", options.seconds,
         "For how long; memory is judged from " + absl::StrCat(kMinSecondsToJudgeMemory) + " on")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}

}  // namespace
}  // namespace privatemail::e2e

int main(int argc, char** argv) { return privatemail::e2e::Main(argc, argv); }
