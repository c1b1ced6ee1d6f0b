// privatemaild-embed with two ranks, one core each, on a PostgreSQL server (T = 5, s = 6, 1,000
// anchors); baseline: one rank.
//
// usage: embed_ranks_benchmark ITEMS DIM
//
// Prints rows per second of a step, and the whole job.
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/store/postgres/postgres_store.h"
#include "tests/e2e/mpirun.h"
#include "tests/e2e/programs.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/temporary_folder.h"

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

struct Times {
  double first = 0;  // start, reading, and the first step
  double step = 0;   // of those after the first
  double last = 0;   // the objective, gathering and saving
  double job = 0;
  double processor = 0;  // of all ranks, waiting for each other included
};

double ProcessorSecondsOfChildren() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Returns zeros on failure.
Times Embed(int ranks, const std::string& conninfo_file, const std::string& directory) {
  std::vector<std::string> command = e2e::Mpirun(
      ranks, {"--collection", "large", "--postgres-file", conninfo_file, "--data-dir", directory});
  command.insert(command.begin() + 1, {"--bind-to", "core"});
  const double processor_before = ProcessorSecondsOfChildren();
  const Clock::time_point start = Clock::now();
  e2e::Program program(command);
  program.ReadLine();
  Times times;
  times.first = SecondsSince(start);
  for (int step = 2; step <= EmbeddingSettings{}.steps; ++step) program.ReadLine();
  const double steps = SecondsSince(start);
  times.step = (steps - times.first) / (EmbeddingSettings{}.steps - 1);
  const e2e::Outcome outcome = program.Wait();
  std::fputs(outcome.err.c_str(), stderr);
  if (outcome.exit_code != 0) return {};
  times.job = SecondsSince(start);
  times.last = times.job - steps;
  times.processor = ProcessorSecondsOfChildren() - processor_before;
  return times;
}

void Print(int ranks, double rows, const Times& times) {
  std::printf(
      "%d rank%s: %.2f s a step, %.0f rows/s; first step after %.2f s, last %.2f s, in all %.2f s "
      "(%.2f processor seconds)\n",
      ranks, ranks == 1 ? "" : "s", times.step, rows / times.step, times.first, times.last,
      times.job, times.processor);
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
  if (argc != 3) return 2;
  const int items = std::atoi(argv[1]), dim = std::atoi(argv[2]);
  PostgresServer server;
  const TemporaryFolder folder;
  const std::string conninfo = server.NewDatabase();
  const std::string conninfo_file = folder.Write("conninfo", conninfo);
  ::chmod(conninfo_file.c_str(), 0600);
  const auto store = PostgresStore::Open(conninfo);
  std::mt19937 bits(1);
  const StoredCollection collection = MakeCollection(dim, &bits);
  if (!store.ok() || !(*store)->Create(collection).ok() ||
      !Fill(store->get(), collection, items, &bits).ok()) {
    std::fprintf(stderr, "the collection cannot be stored\n");
    return 1;
  }
  std::printf("privatemaild-embed, n %d, d %d, k 2, T 5, s 6; one core a rank\n", items, dim);
  const Times one = Embed(1, conninfo_file, folder.path());
  PrintTable(conninfo, "items", items);
  PrintTable(conninfo, "embedded_items", items);
  const Times two = Embed(2, conninfo_file, folder.path());
  if (!(one.job > 0) || !(two.job > 0)) return 1;
  const double rows = items + kAnchors;
  Print(1, rows, one);
  Print(2, rows, two);
  std::printf("2 ranks are %.2f times as fast in a step, %.2f times in all\n", one.step / two.step,
              one.job / two.job);
  return 0;
}

}  // namespace
}  // namespace privatemail::server

int main(int argc, char** argv) { return privatemail::server::Main(argc, argv); }
