// Searches per second over TLS; baseline: an empty gRPC echo with equal message sizes.
//
// usage: serving_benchmark ITEMS
//        serving_benchmark echo CERTIFICATE KEY BYTES    runs the echo, as the benchmark itself
//        does
//
// 16 connections; daemon and echo are separate processes that take turns. Callers do not parse
// answers. Afterwards the searches are repeated during builds, and those of the index alone in one
// thread.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/schemes/joint/joint_search.h"
#include "common/base/files.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/ledger.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "server/engine/retriever.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/benchmarks/measure.h"
#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCallers = 16;
constexpr int kRounds = 3;
constexpr double kRoundSeconds = 5;
constexpr int kSlots = 100;
constexpr int kAnchors = 1000;
constexpr int kFeaturesOfRows = 8;
constexpr int kNeighbours = 8;
constexpr int kSearches = 64;
constexpr char kListening[] = "listening on ";

std::string Text(const std::string& path) { return *ReadFile("file", path, 1 << 20); }

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

// Serves with TLS on a free port until killed; prints the address.
int RunEcho(const std::string& certificate, const std::string& key, size_t bytes) {
  Echo echo(bytes);
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({Text(key), Text(certificate)});
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port);
  builder.RegisterService(&echo);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::printf("%s127.0.0.1:%d\n", kListening, port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}

// One connection that sends and receives bytes without parsing them, so that only the server's work
// is measured.
class Caller {
 public:
  Caller(const std::string& address, const std::string& certificate)
      : stub_(grpc::CreateCustomChannel(address, grpc::SslCredentials({certificate, "", ""}),
                                        OwnConnection())) {}

  // Returns whether the whole answer came.
  bool Search(const std::string& key, const grpc::ByteBuffer& request) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + key);
    grpc::ByteBuffer response;
    grpc::Status status;
    const auto call = stub_.PrepareUnaryCall(&context, "/privatemail.v1.RetrievalService/Retrieve",
                                             request, &queue_);
    call->StartCall();
    call->Finish(&response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok && status.ok();
  }

 private:
  static grpc::ChannelArguments OwnConnection() {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return own;
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

struct Figures {
  double rate = 0;  // calls per second
  double p50 = 0;   // seconds
  double p99 = 0;
  double processor = 0;  // seconds of the server per call
};

struct Served {
  std::string address;
  clockid_t clock = 0;      // of its process
  std::string certificate;  // PEM

  Served(std::string listening, pid_t process, std::string pem)
      : address(std::move(listening)), certificate(std::move(pem)) {
    if (::clock_getcpuclockid(process, &clock) != 0) std::abort();
  }
};

// Repeats `call` for some seconds on kCallers connections.
Figures Load(const Served& server, const std::function<bool(Caller&)>& call) {
  std::vector<std::vector<double>> seconds(kCallers);
  std::atomic<int> failures = 0;
  std::vector<std::thread> callers;
  const double before = ProcessorSeconds(server.clock);
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      Caller connection(server.address, server.certificate);
      Clock::time_point end;
      for (int number = 0;; ++number) {
        const Clock::time_point start = Clock::now();
        if (!call(connection)) ++failures;
        const Clock::time_point now = Clock::now();
        // The first call includes the handshake.
        if (number == 0) {
          end = now + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(kRoundSeconds));
          continue;
        }
        seconds[static_cast<size_t>(caller)].push_back(
            std::chrono::duration<double>(now - start).count());
        if (now > end) return;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  if (failures > 0) {
    std::fprintf(stderr, "%d calls failed\n", failures.load());
    std::abort();
  }
  std::vector<double> all;
  for (const auto& some : seconds) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  return {static_cast<double>(all.size()) / kRoundSeconds, all[all.size() / 2],
          all[all.size() * 99 / 100],
          (ProcessorSeconds(server.clock) - before) / static_cast<double>(all.size() + kCallers)};
}

// The round with the median rate.
Figures Middle(std::vector<Figures> rounds) {
  std::sort(rounds.begin(), rounds.end(),
            [](const Figures& a, const Figures& b) { return a.rate < b.rate; });
  return rounds[rounds.size() / 2];
}

struct SideBySide {
  Figures ours;
  Figures theirs;
};

// Loads both servers in turns, so that they see the same machine; returns the median round of each.
SideBySide LoadInTurns(const Served& ours, const Served& theirs,
                       const std::function<bool(Caller&)>& call) {
  std::vector<Figures> of_ours, of_theirs;
  for (int round = 0; round < kRounds; ++round) {
    of_theirs.push_back(Load(theirs, call));
    of_ours.push_back(Load(ours, call));
  }
  return {Middle(of_ours), Middle(of_theirs)};
}

// Aborts if it does not listen.
std::unique_ptr<Daemon> StartDaemon(const TemporaryFolder& folder) {
  auto daemon = std::make_unique<Daemon>(folder / "data", Command{"--log-level", "warning"});
  if (!daemon->listening()) std::abort();
  return daemon;
}

AdminClient Connect(const Daemon& daemon) {
  ConnectionOptions options;
  options.server = daemon.address();
  options.ca_file = daemon.certificate();
  options.key_file = daemon.admin_key();
  return *AdminClient::Create(options);
}

void Build(const AdminClient& admin) {
  // Labels of the rows are not those of their clouds.
  const auto built = admin.BuildEmbedding(
      "things", [](const auto& /*progress*/) {}, /*accept_misalignment=*/true);
  if (!built.ok()) std::abort();
}

// Row i has class i modulo kSlots.
void Fill(const AdminClient& admin, int items) {
  // The settings of all figures so far.
  v1::CreateCollectionRequest create = NewThings({.alpha = 12, .steps = 5});
  ToProto(SeparatedClasses(kAnchors, 1, kFeaturesOfRows).vectors, create.mutable_anchors());
  create.mutable_anchor_labels()->Clear();
  for (int i = 0; i < kAnchors; ++i) create.add_anchor_labels(i % kSlots);
  if (!admin.CreateCollection(create).ok()) std::abort();
  const FloatMatrix rows = SeparatedClasses(items, 2, kFeaturesOfRows).vectors;
  Eigen::Index sent = 0;
  const auto filled = admin.UpsertItems([&](v1::UpsertItemsRequest* message) {
    if (sent == rows.rows()) return false;
    message->set_collection("things");
    for (const Eigen::Index last = std::min(rows.rows(), sent + 5000); sent < last; ++sent) {
      v1::Item* item = message->add_items();
      item->set_id(absl::StrCat("item-", 10'000'000 + sent));
      item->set_label(static_cast<int32_t>(sent % kSlots));
      item->mutable_features()->Assign(rows.row(sent).data(), rows.row(sent).data() + rows.cols());
    }
    return true;
  });
  if (!filled.ok()) std::abort();
  Build(admin);
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
    for (; !loaded; ++builds) Build(admin);
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
  Fill(Connect(*daemon), items);
  daemon->program().Signal(SIGTERM);
  daemon->program().Wait();

  // A second daemon, to measure the start with a built collection.
  const Clock::time_point before = Clock::now();
  daemon = StartDaemon(folder);
  const double ready = SecondsSince(before);
  const AdminClient admin = Connect(*daemon);
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
  const Served theirs{echo.ReadLine()->substr(std::strlen(kListening)), echo.pid(), certificate};
  std::vector<grpc::ByteBuffer> bytes;
  for (const v1::RetrieveRequest& one : requests) {
    const grpc::Slice slice(one.SerializeAsString());
    bytes.emplace_back(&slice, 1);
  }
  std::atomic<size_t> next = 0;
  std::string key = Text(folder / "data/admin.key");
  key.erase(key.find_last_not_of('\n') + 1);
  const auto search = [&](Caller& caller) {
    return caller.Search(key, bytes[next++ % bytes.size()]);
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
  if (argc == 5 && std::string(argv[1]) == "echo") {
    return RunEcho(argv[2], argv[3], std::strtoul(argv[4], nullptr, 10));
  }
  return argc == 2 ? Measure(argv[0], std::atoi(argv[1])) : 2;
}
