// Searches per second over TLS; baseline: an empty gRPC echo with equal message sizes.
//
// usage: serving_benchmark ITEMS
//        serving_benchmark echo CERTIFICATE KEY BYTES    runs the echo, as the benchmark itself
//        does
//
// 16 connections; daemon and echo are separate processes that take turns. Callers do not parse
// answers. Afterwards the searches are repeated during builds, and those of the index alone in one
// thread.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "client/schemes/joint/joint_search.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/ledger.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "server/engine/retriever.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/benchmarks/measure.h"
#include "tests/benchmarks/serving_load.h"
#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSlots = 100;
constexpr int kAnchors = 1000;
constexpr int kFeaturesOfRows = 8;
constexpr int kNeighbours = 8;
constexpr int kSearches = 64;

// Answers every search with `bytes` bytes.
class Echo final : public v1::RetrievalService::CallbackService {
 public:
  explicit Echo(size_t bytes) {
    answer_.add_slots()->add_matches()->set_id(std::string(bytes, 'x'));
  }

  grpc::ServerUnaryReactor* Retrieve(grpc::CallbackServerContext* context,
                                     const v1::RetrieveRequest* /*request*/,
                                     v1::RetrieveResponse* response) override {
    *response = answer_;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  v1::RetrieveResponse answer_;
};

void Fill(const AdminClient& admin, int items) {
  v1::CreateCollectionRequest create = NewThingsOf(kAnchors, kFeaturesOfRows, kSlots);
  if (!admin.CreateCollection(create).ok()) std::abort();
  Upload(admin, "things", SeparatedClasses(items, 2, kFeaturesOfRows).vectors, kSlots);
  Build(admin, "things");
}

// Real requests, each for another target.
std::vector<v1::RetrieveRequest> Searches(const AdminClient& admin, const TemporaryFolder& folder) {
  const auto collection = *admin.GetCollection("things");
  const auto joint = *JointCollection::Create(
      collection, [&] { return admin.GetAnchors("things", collection.fingerprint()); }, {}, {});
  const std::string& uuid = joint->scheme.parameters().collection_uuid;
  const auto ledger = *Ledger::Open(folder / "ledger");
  if (!ledger->Grant(uuid, {.epsilon = 1000, .delta = .1}).ok()) std::abort();
  SecureBits bits;
  SearchRequest request{.collection = "things",
                        .k = kNeighbours,
                        .with_payloads = false,
                        .epsilon = 1,
                        .delta = 1e-5};
  for (int i = 0; i < kSearches; ++i) {
    request.targets.push_back(
        {.features = Eigen::RowVectorXf::Random(kFeaturesOfRows), .label = i % kSlots});
  }
  const auto search = *JointSearch::Create(joint, request);
  std::vector<v1::RetrieveRequest> searches;
  for (size_t i = 0; i < request.targets.size(); ++i) {
    const PreparedSearch prepared = *search->Prepare(i, 1, ChargeTo(*ledger, uuid), bits);
    searches.push_back(static_cast<const v1::RetrieveRequest&>(*prepared.message));
  }
  return searches;
}

void PrintSearches(const SideBySide& figures, int items) {
  const auto& [search, empty] = figures;
  std::printf(
      "daemon, TLS, %d callers, n %d, k 2, %d slots, %d neighbours: %.0f a second, p50 %.1f ms, "
      "p99 %.1f ms (%.1f times, target 5: %s)\n",
      kCallers, items, kSlots, kNeighbours, search.rate, 1e3 * search.p50, 1e3 * search.p99,
      search.p99 / search.p50, Verdict(search.p99 < 5 * search.p50));
  std::printf("empty echo: %.0f a second, so searches are %.2f of it (target .35: %s)\n",
              empty.rate, search.rate / empty.rate, Verdict(search.rate >= .35 * empty.rate));
}

// Processor seconds of the index for one request, over the coordinates that the daemon saved.
double IndexSeconds(const std::string& data, const std::vector<v1::RetrieveRequest>& requests) {
  constexpr int kRuns = 5;
  const auto store = *server::SqliteStore::Open(data);
  const server::StoredCollection stored = store->LoadCollections()->front();
  server::Embedding embedding = **store->LoadEmbedding(stored.parameters);
  const ExactIndex index(embedding.coordinates);
  const server::Retriever retriever(stored.parameters, stored.anchors.labels, std::move(embedding));
  std::vector<Matrix> targets;
  for (const v1::RetrieveRequest& request : requests) {
    const Matrix release = FromProto("release", request.release())->cast<double>();
    server::RetrievalQuery query;
    query.release = release;
    query.k = 1;
    const auto answer = retriever.Retrieve(query);
    targets.push_back(answer->alignment.Apply(release.topRows(kSlots)));
  }
  const double start = ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID);
  for (int run = 0; run < kRuns; ++run) {
    for (const Matrix& of_request : targets) index.Search(of_request, kNeighbours);
  }
  return (ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID) - start) /
         (kRuns * static_cast<double>(targets.size()));
}

void PrintProcessorTime(const SideBySide& figures, double index) {
  const double daemon = figures.ours.processor, echo = figures.theirs.processor;
  const double least = echo + index;
  std::printf(
      "processor time of a call: daemon %.0f us, echo %.0f us, its searches alone %.0f us: %.2f "
      "times both (target 1.4: %s)\n",
      1e6 * daemon, 1e6 * echo, 1e6 * index, daemon / least, Verdict(daemon <= 1.4 * least));
}

void PrintSearchesDuringBuilds(const AdminClient& admin, const Served& served, double rate,
                               const std::function<bool(Caller&)>& search) {
  std::atomic<bool> loaded = false;
  int builds = 0;
  std::thread builder([&] {
    for (; !loaded; ++builds) Build(admin, "things");
  });
  const Figures beside = Load(served, search);
  loaded = true;
  builder.join();
  std::printf(
      "while it is being built (%d times): %.0f a second, %.2f of those without; p50 %.1f ms, p99 "
      "%.1f ms (%.1f times, target 3: %s)\n",
      builds, beside.rate, beside.rate / rate, 1e3 * beside.p50, 1e3 * beside.p99,
      beside.p99 / beside.p50, Verdict(beside.p99 <= 3 * beside.p50));
}

int Measure(const char* self, int items) {
  const TemporaryFolder folder;
  auto daemon = StartDaemon(folder);
  Fill(*AdminClient::Create(AdminOf(*daemon)), items);
  daemon->program().Signal(SIGTERM);
  daemon->program().Wait();

  // A second daemon, to measure the start with a built collection.
  const Clock::time_point before = Clock::now();
  daemon = StartDaemon(folder);
  const double ready = SecondsSince(before);
  const AdminClient admin = *AdminClient::Create(AdminOf(*daemon));
  const std::vector<v1::RetrieveRequest> requests = Searches(admin, folder);
  const v1::RetrieveRequest& request = requests.front();
  const size_t answer_bytes = admin.Retrieve(request)->ByteSizeLong();
  const double floats = 4. * request.release().values_size();
  std::printf("request %zu bytes, %.1f %% beyond its floats (target 5); answer %zu bytes\n",
              request.ByteSizeLong(),
              100 * (static_cast<double>(request.ByteSizeLong()) / floats - 1), answer_bytes);

  Program echo({self, "echo", daemon->certificate(), folder / "data/tls/server.key",
                std::to_string(answer_bytes)});
  const std::string certificate = Text(daemon->certificate());
  const Served ours{daemon->address(), daemon->program().pid(), certificate};
  const Served theirs{AddressOf(&echo), echo.pid(), certificate};
  std::vector<grpc::ByteBuffer> bytes;
  for (const v1::RetrieveRequest& one : requests) bytes.push_back(BytesOf(one));
  std::atomic<size_t> next = 0;
  const auto search = [&, key = AdminKey(folder)](Caller& caller) {
    return caller.Unary("/privatemail.v1.RetrievalService/Retrieve", key,
                        bytes[next++ % bytes.size()]);
  };
  const SideBySide figures = LoadInTurns(ours, theirs, search);
  PrintSearches(figures, items);
  std::printf("start with a built collection of %d: ready after %.2f s (target 3: %s)\n", items,
              ready, Verdict(ready < 3));
  PrintSearchesDuringBuilds(admin, ours, figures.ours.rate, search);
  daemon->program().Signal(SIGTERM);
  daemon->program().Wait();
  PrintProcessorTime(figures, IndexSeconds(folder / "data", requests));
  return 0;
}

}  // namespace
}  // namespace privatemail::e2e

int main(int argc, char** argv) {
  using namespace privatemail::e2e;
  return RunBenchmark<Echo>(argc, argv, &Measure);
}
