// The whole job of privatemaild-embed, from its start to the saved embedding, on a PostgreSQL
// server of this machine (T = 5, s = 6, 1,000 anchors, an earlier embedding is replaced): two ranks
// of one core each. Baselines: one rank of one core, and one rank that may use all cores.
//
// usage: embed_ranks_benchmark ITEMS DIM [ROUNDS]    default 3
//
// Each round runs all three. Prints medians: rows per second of a step, seconds of the job's parts,
// processor seconds, and the ratios of the rounds. Beside other work, which takes more from two
// ranks than from one, compare `critical`: processor seconds that follow each other.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/store/postgres/postgres_store.h"
#include "tests/e2e/mpirun.h"
#include "tests/e2e/programs.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/temporary_folder.h"
#include "tests/testing/wait_until.h"

namespace privatemail::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kUuid[] = "4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5";
constexpr int kAnchors = 1000;
constexpr int kClasses = 100;
constexpr int kAtOnce = 5000;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

StoredCollection MakeCollection(int dim, std::mt19937* bits) {
  std::normal_distribution<float> normal;
  StoredCollection collection;
  collection.name = "large";
  collection.anchors.features =
      FloatMatrix::NullaryExpr(kAnchors, dim, [&] { return normal(*bits); });
  for (int i = 0; i < kAnchors; ++i) collection.anchors.labels.push_back(i % kClasses);
  collection.parameters =
      *MakePublicParameters(kUuid, EmbeddingSettings{}, collection.anchors, {}, "vectors");
  return collection;
}

absl::Status Fill(Store* store, const StoredCollection& collection, int items, std::mt19937* bits) {
  std::normal_distribution<float> normal;
  for (int first = 0; first < items; first += kAtOnce) {
    std::vector<Item> batch(static_cast<size_t>(std::min(kAtOnce, items - first)));
    for (Item& item : batch) {
      const auto number = first + (&item - batch.data());
      item.id = absl::StrFormat("%09d", number);
      item.label = static_cast<int32_t>(number % kClasses);
      item.features.resize(static_cast<size_t>(collection.parameters.feature_dim));
      for (float& value : item.features) value = normal(*bits);
    }
    const auto result = store->Upsert(collection.parameters, batch);
    if (!result.ok()) return result.status();
  }
  return absl::OkStatus();
}

struct Setup {
  const char* name;
  int ranks;
  std::vector<std::string> flags;  // of mpirun
};

struct Times {
  double first = 0;  // start, reading, and the first step
  double step = 0;   // of those after the first
  double last = 0;   // the objective, and saving
  double job = 0;
  double processor = 0;  // of mpirun and all ranks
  double critical = 0;   // of each part: the processor seconds of the rank and of the session of
                         // the server that took most
};

double ProcessorSecondsOfChildren() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// User and system time: columns 14 and 15 of /proc/PID/stat; the name, column 2, has no spaces
// here.
double ProcessorSeconds(pid_t process) {
  std::ifstream stat(absl::StrCat("/proc/", process, "/stat"));
  std::string line;
  std::getline(stat, line);
  std::istringstream columns(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string skipped;
  for (int column = 3; column < 14; ++column) columns >> skipped;
  double user = 0, system = 0;
  columns >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Samples the processor seconds of a program's children until they end.
class ChildTimes {
 public:
  explicit ChildTimes(pid_t parent) : parent_(parent) {
    Sample();
    before_ = now_;
    thread_ = std::thread([this] {
      for (; !stopped_; std::this_thread::sleep_for(std::chrono::milliseconds(20))) Sample();
    });
  }
  ~ChildTimes() {
    stopped_ = true;
    thread_.join();
  }

  // The most that one of them has used since the last call.
  double Most() {
    const std::lock_guard<std::mutex> guard(mutex_);
    double most = 0;
    for (const auto& [process, seconds] : now_) {
      most = std::max(most, seconds - std::exchange(before_[process], seconds));
    }
    return most;
  }

 private:
  void Sample() {
    std::ifstream list(absl::StrCat("/proc/", parent_, "/task/", parent_, "/children"));
    const std::lock_guard<std::mutex> guard(mutex_);
    for (pid_t one = 0; list >> one;) now_[one] = std::max(now_[one], ProcessorSeconds(one));
  }

  const pid_t parent_;
  std::mutex mutex_;
  std::map<pid_t, double> now_, before_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

// Vacuums, so that each job finds the same tables; then no session is left.
void Prepare(const std::string& conninfo) {
  PostgresServer::Ask(conninfo, "VACUUM ANALYZE privatemail.items, privatemail.embedded_items");
  PostgresServer::Ask(conninfo, "CHECKPOINT");
  const auto alone = [&] {
    return PostgresServer::Ask(conninfo,
                               "SELECT count(*) FROM pg_stat_activity WHERE "
                               "backend_type = 'client backend'") == "1";
  };
  if (!WaitUntil(alone)) std::fprintf(stderr, "sessions are left\n");
}

// Returns zeros on failure.
Times Embed(const Setup& setup, const PostgresServer& server, const std::string& conninfo,
            const std::string& conninfo_file, const std::string& directory) {
  std::vector<std::string> command = e2e::Mpirun(
      setup.ranks,
      {"--collection", "large", "--postgres-file", conninfo_file, "--data-dir", directory});
  command.insert(command.begin() + 1, setup.flags.begin(), setup.flags.end());
  Prepare(conninfo);
  const double processor_before = ProcessorSecondsOfChildren();
  ChildTimes sessions(server.pid());
  const Clock::time_point start = Clock::now();
  e2e::Program program(command);
  ChildTimes ranks(program.pid());
  Times times;
  const auto add_part = [&] { times.critical += ranks.Most() + sessions.Most(); };
  program.ReadLine();
  times.first = SecondsSince(start);
  add_part();
  for (int step = 2; step <= EmbeddingSettings{}.steps; ++step) program.ReadLine();
  const double steps = SecondsSince(start);
  add_part();
  times.step = (steps - times.first) / (EmbeddingSettings{}.steps - 1);
  const e2e::Outcome outcome = program.Wait();
  std::fputs(outcome.err.c_str(), stderr);
  if (outcome.exit_code != 0) return {};
  times.job = SecondsSince(start);
  add_part();
  times.last = times.job - steps;
  times.processor = ProcessorSecondsOfChildren() - processor_before;
  return times;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double Median(const std::vector<Times>& rounds, double Times::*value) {
  std::vector<double> values;
  for (const Times& one : rounds) values.push_back(one.*value);
  return Median(std::move(values));
}

void Print(const Setup& setup, double rows, const std::vector<Times>& rounds) {
  const auto of = [&](double Times::*value) { return Median(rounds, value); };
  std::printf(
      "%s: %.2f s a step, %.0f rows/s; first step after %.2f s, last %.2f s, in all %.2f s "
      "(processor seconds: %.2f of the ranks, %.2f critical)\n",
      setup.name, of(&Times::step), rows / of(&Times::step), of(&Times::first), of(&Times::last),
      of(&Times::job), of(&Times::processor), of(&Times::critical));
}

void PrintRatio(const char* name, const std::vector<Times>& before, const std::vector<Times>& after,
                double Times::*value) {
  std::vector<double> ratios;
  for (size_t i = 0; i < before.size(); ++i) ratios.push_back(before[i].*value / (after[i].*value));
  std::printf("  %s: %.2f times as fast (", name, Median(ratios));
  for (const double one : ratios) std::printf(" %.2f", one);
  std::printf(" )\n");
}

void PrintTable(const std::string& conninfo, const char* table, int items) {
  const auto bytes_a_row = [&](const char* function) {
    const std::string bytes = PostgresServer::Ask(
        conninfo, absl::StrCat("SELECT ", function, "('privatemail.", table, "')"));
    return std::atof(bytes.c_str()) / items;
  };
  std::printf("%s: %.0f bytes a row, %.0f in indexes\n", table, bytes_a_row("pg_table_size"),
              bytes_a_row("pg_indexes_size"));
}

int Main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const int items = std::atoi(argv[1]), dim = std::atoi(argv[2]);
  const int rounds = argc == 4 ? std::atoi(argv[3]) : 3;
  PostgresServer server(std::vector<std::string>{});
  server.Start({"-c", "autovacuum=off"});  // otherwise it runs beside some jobs and not others
  const TemporaryFolder folder;
  const std::string conninfo = server.NewDatabase();
  const std::string conninfo_file = folder.Write("conninfo", conninfo);
  ::chmod(conninfo_file.c_str(), 0600);
  auto store = PostgresStore::Open(conninfo);
  std::mt19937 bits(1);
  const StoredCollection collection = MakeCollection(dim, &bits);
  if (!store.ok() || !(*store)->Create(collection).ok() ||
      !Fill(store->get(), collection, items, &bits).ok()) {
    std::fprintf(stderr, "the collection cannot be stored\n");
    return 1;
  }
  store = absl::UnknownError("closed");  // ends its sessions
  const std::vector<Setup> setups = {{"1 rank of one core", 1, {"--bind-to", "core"}},
                                     {"1 rank of all cores", 1, {"--bind-to", "none"}},
                                     {"2 ranks of one core", 2, {"--bind-to", "core"}}};
  std::printf("privatemaild-embed, n %d, d %d, k 2, T 5, s 6\n", items, dim);
  std::vector<std::vector<Times>> times(setups.size());
  for (int round = -1; round < rounds; ++round) {
    for (size_t i = 0; i < setups.size(); ++i) {
      const Times one = Embed(setups[i], server, conninfo, conninfo_file, folder.path());
      if (!(one.job > 0)) return 1;
      if (round >= 0) times[i].push_back(one);
      if (round < 0) break;  // the first makes the embedding that the others replace
    }
  }
  PrintTable(conninfo, "items", items);
  PrintTable(conninfo, "embedded_items", items);
  for (size_t i = 0; i < setups.size(); ++i) Print(setups[i], items + kAnchors, times[i]);
  for (const size_t baseline : {0, 1}) {
    std::printf("%s against %s, medians and all rounds:\n", setups[2].name, setups[baseline].name);
    PrintRatio("a step", times[baseline], times[2], &Times::step);
    PrintRatio("in all", times[baseline], times[2], &Times::job);
    // The threads of a rank of all cores do not follow each other.
    if (baseline == 0) PrintRatio("critical", times[baseline], times[2], &Times::critical);
  }
  return 0;
}

}  // namespace
}  // namespace privatemail::server

int main(int argc, char** argv) { return privatemail::server::Main(argc, argv); }
