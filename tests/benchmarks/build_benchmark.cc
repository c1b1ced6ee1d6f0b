// A whole build through the daemon (T = 5, s = 6, k = 2), features in memory and in a file.
//
// usage: build_benchmark ITEMS DIM
//
// Prints time and growth of the daemon's memory, each with its target. A small memory
// forces the build to use a file.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/benchmarks/measure.h"
#include "tests/benchmarks/serving_load.h"
#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

constexpr int kAnchors = 1000;
constexpr int kClasses = 100;
constexpr double kTargetSeconds = 60;
constexpr double kTargetMemory = 1.3;
// Documented bytes per row of a build with features in a file: images of the embedding, degrees,
// lengths and classes; id and payload; coordinates and their tree.
double StatedBytesOfRow() {
  constexpr double kColumns = 2;
  const double cores = std::thread::hardware_concurrency();
  return 8 * (kColumns + 1) * (4 + cores) + 24 + 2 * sizeof(std::string) + 16 * kColumns + 43;
}

// A line of /proc/PID/status, in bytes.
double MemoryOf(pid_t process, const std::string& line) {
  std::ifstream status(absl::StrCat("/proc/", process, "/status"));
  double kibibytes = 0;
  for (std::string word; status >> word;) {
    if (word == line) status >> kibibytes;
  }
  return 1024 * kibibytes;
}

void ForgetPeak(pid_t process) {
  std::ofstream(absl::StrCat("/proc/", process, "/clear_refs")) << 5;
}

struct Job {
  double seconds = 0;
  double grown = 0;  // bytes
};

Job BuildWith(const TemporaryFolder& folder, const std::string& settings) {
  const auto daemon = StartDaemon(folder, {"--config", settings});
  const AdminClient admin = *AdminClient::Create(AdminOf(*daemon));
  const pid_t process = daemon->program().pid();
  ForgetPeak(process);
  const double before = MemoryOf(process, "VmRSS:");
  const auto start = std::chrono::steady_clock::now();
  Build(admin, "things");
  const double seconds = SecondsSince(start);
  return {seconds, MemoryOf(process, "VmHWM:") - before};
}

int Measure(int items, int dim) {
  const TemporaryFolder folder;
  {
    const auto daemon = StartDaemon(folder);
    const AdminClient admin = *AdminClient::Create(AdminOf(*daemon));
    if (!admin.CreateCollection(NewThingsOf(kAnchors, dim, kClasses)).ok()) std::abort();
    Upload(admin, "things", SeparatedClasses(items, 2, dim).vectors, kClasses);
  }
  const double feature_bytes = 4. * items * dim;
  const Job in_memory = BuildWith(folder, folder.Write("large.toml", ""));
  std::printf("build through the daemon, n %d, d %d, k 2, T 5, s 6: %.2f s, target %.0f s: %s\n",
              items, dim, in_memory.seconds, kTargetSeconds,
              Verdict(in_memory.seconds < kTargetSeconds));
  std::printf("  the daemon grew by %.2f times the features, target %.1f: %s\n",
              in_memory.grown / feature_bytes, kTargetMemory,
              Verdict(in_memory.grown / feature_bytes < kTargetMemory));

  const auto memory = static_cast<int64_t>(feature_bytes / 2 + (int64_t{64} << 20));
  const Job in_file = BuildWith(
      folder, folder.Write("small.toml", absl::StrCat("memory = ", 4 * memory, "\n")));
  std::printf(
      "  with %.0f MB for the build: %.1f s; it grew by %.0f MB, %.0f bytes a row, stated "
      "%.0f: %s\n",
      1e-6 * static_cast<double>(memory), in_file.seconds, 1e-6 * in_file.grown,
      in_file.grown / items, StatedBytesOfRow(),
      Verdict(in_file.grown <= items * StatedBytesOfRow()));
  return 0;
}

}  // namespace
}  // namespace privatemail::e2e

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return privatemail::e2e::Measure(std::atoi(argv[1]), std::atoi(argv[2]));
}
