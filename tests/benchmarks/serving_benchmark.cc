// Searches a second over TLS beside those of an empty gRPC echo with the same message sizes:
// serving_benchmark ITEMS. 16 callers, each with a connection of its own; daemon and echo are
// processes of their own and take turns, so that both meet the same machine. Callers send and take
// bytes: what a client makes of an answer is not the daemon's work, and would slow down one of the
// two alone. Then the same searches while the collection is embedded again and again.
//
// The program runs itself as the echo: serving_benchmark echo CERTIFICATE KEY BYTES.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/transport.h"
#include "common/base/files.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "tests/e2e/load_certificates.h"
#include "tests/e2e/programs.h"
#include "tests/e2e/service.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::e2e {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCallers = 16;
constexpr int kRounds = 3;
constexpr double kRoundSeconds = 5;
constexpr int kSlots = 100;
constexpr int kAnchors = 1000;
constexpr int kNeighbours = 8;

std::string Text(const std::string& path) { return *ReadFile("file", path, 1 << 20); }

// Answers every search with as many bytes.
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

int RunEcho(const std::string& certificate, const std::string& key, size_t bytes) {
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({Text(key), Text(certificate)});
  Echo echo(bytes);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port);
  builder.RegisterService(&echo);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::printf("listening on 127.0.0.1:%d\n", port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}

// Calls a second, and how long single ones take.
struct Figures {
  double rate = 0;
  double p50 = 0;  // seconds
  double p99 = 0;
  double processor = 0;  // seconds of the server's a call
};

// Of a process, so far.
double ProcessorSeconds(pid_t process) {
  std::ifstream stat(absl::StrCat("/proc/", process, "/stat"));
  std::string word;
  while (stat >> word && word.back() != ')') {  // the name of the program ends there
  }
  for (int i = 0; i < 11; ++i) stat >> word;
  double user = 0;
  double system = 0;
  stat >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// One connection, which knows bytes alone.
class Caller {
 public:
  Caller(const std::string& address, const std::string& authority)
      : stub_(
            grpc::CreateCustomChannel(address, grpc::SslCredentials({authority, "", ""}), Own())) {}

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
  static grpc::ChannelArguments Own() {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return own;
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

Figures Load(const std::string& address, pid_t server, const std::string& authority,
             const std::string& key, const v1::RetrieveRequest& request) {
  const std::string text = request.SerializeAsString();
  const grpc::Slice slice(text);
  const grpc::ByteBuffer bytes(&slice, 1);
  std::vector<std::vector<double>> seconds(kCallers);
  std::atomic<int> failures = 0;
  std::vector<std::thread> callers;
  const double before = ProcessorSeconds(server);
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      Caller connection(address, authority);
      Clock::time_point end;
      for (int call = 0;; ++call) {
        const Clock::time_point start = Clock::now();
        if (!connection.Search(key, bytes)) ++failures;
        const Clock::time_point now = Clock::now();
        // The first call shakes hands.
        if (call == 0) {
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
  if (failures > 0) std::fprintf(stderr, "%d calls failed\n", failures.load());
  std::vector<double> all;
  for (const auto& some : seconds) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  return {static_cast<double>(all.size()) / kRoundSeconds, all[all.size() / 2],
          all[all.size() * 99 / 100],
          (ProcessorSeconds(server) - before) / static_cast<double>(all.size() + kCallers)};
}

void Build(const Transport& admin) {
  if (!admin.BuildEmbedding("things", [](const auto& /*progress*/) {}).ok()) std::abort();
}

void Fill(const Transport& admin, int items) {
  const Labelled anchors = SeparatedClasses(kAnchors, 1, 8);
  v1::CreateCollectionRequest create = NewThings();
  create.mutable_anchors()->set_rows(kAnchors);
  create.mutable_anchors()->set_cols(8);
  create.mutable_anchors()->mutable_values()->Assign(
      anchors.vectors.data(), anchors.vectors.data() + anchors.vectors.size());
  create.mutable_anchor_labels()->Clear();
  for (int i = 0; i < kAnchors; ++i) create.add_anchor_labels(i % kSlots);
  if (!admin.CreateCollection(create).ok()) std::abort();
  int sent = 0;
  const Labelled rows = SeparatedClasses(items, 2, 8);
  const auto filled = admin.UpsertItems([&](v1::UpsertItemsRequest* message) {
    if (sent == items) return false;
    message->set_collection("things");
    for (const int last = std::min(items, sent + 5000); sent < last; ++sent) {
      v1::Item* item = message->add_items();
      item->set_id(absl::StrCat("item-", 10'000'000 + sent));
      item->set_label(sent % kSlots);
      item->mutable_features()->Assign(rows.vectors.row(sent).data(),
                                       rows.vectors.row(sent).data() + 8);
    }
    return true;
  });
  if (!filled.ok()) std::abort();
  Build(admin);
}

// The daemon's processes: the second one shows how soon an embedding that is there answers.
std::unique_ptr<Daemon> Start(const TemporaryFolder& folder, const Certificates& certificates) {
  auto daemon = std::make_unique<Daemon>(
      folder / "data",
      std::vector<std::string>{"--tls-cert", certificates.served(), "--tls-key",
                               certificates.served_key(), "--log-level", "warning"});
  if (!daemon->listening()) std::abort();
  return daemon;
}

int Measure(const char* self, int items) {
  const TemporaryFolder folder;
  const Certificates certificates = *Certificates::Make(folder.path());
  auto daemon = Start(folder, certificates);
  ConnectionOptions options;
  options.server = daemon->address();
  options.ca_file = certificates.authority();
  options.key_file = folder / "data/admin.key";
  Fill(*Transport::Create(options), items);
  daemon->program().Signal(SIGTERM);
  daemon->program().Wait();

  const Clock::time_point before = Clock::now();
  daemon = Start(folder, certificates);
  const double ready = std::chrono::duration<double>(Clock::now() - before).count();
  options.server = daemon->address();
  const Transport searcher = *Transport::Create(options);
  v1::RetrieveRequest request = RandomSearch(*searcher.GetCollection("things"));
  request.set_k(kNeighbours);
  const size_t answer_bytes = searcher.Retrieve(request)->ByteSizeLong();
  Program echo({self, "echo", certificates.served(), certificates.served_key(),
                std::to_string(answer_bytes)});
  const std::string echo_address = echo.ReadLine()->substr(std::strlen("listening on "));

  const std::string authority = Text(certificates.authority());
  std::string key = Text(options.key_file);
  key.erase(key.find_last_not_of('\n') + 1);
  std::vector<Figures> ours, theirs;
  for (int round = 0; round < kRounds; ++round) {
    theirs.push_back(Load(echo_address, echo.pid(), authority, key, request));
    ours.push_back(Load(daemon->address(), daemon->program().pid(), authority, key, request));
  }
  const auto by_rate = [](const Figures& a, const Figures& b) { return a.rate < b.rate; };
  std::sort(ours.begin(), ours.end(), by_rate);
  std::sort(theirs.begin(), theirs.end(), by_rate);
  const Figures& search = ours[kRounds / 2];
  const Figures& empty = theirs[kRounds / 2];
  const double bytes = static_cast<double>(request.ByteSizeLong());
  const double floats = 4. * request.release().values_size();
  std::printf("request %.0f bytes, %.1f %% beyond its floats (target 5); answer %zu bytes\n", bytes,
              100 * (bytes / floats - 1), answer_bytes);
  std::printf(
      "daemon, TLS, %d callers, n %d, k 2, %d slots, %d neighbours: %.0f a second, p50 %.1f ms, "
      "p99 %.1f ms (%.1f times, target 5)\n",
      kCallers, items, kSlots, kNeighbours, search.rate, 1e3 * search.p50, 1e3 * search.p99,
      search.p99 / search.p50);
  std::printf("empty echo: %.0f a second, so searches are %.2f of it (target .5)\n", empty.rate,
              search.rate / empty.rate);
  std::printf("processor time of a call: daemon %.0f us, echo %.0f us\n", 1e6 * search.processor,
              1e6 * empty.processor);
  std::printf("start with a built collection of %d: ready after %.2f s (target 3)\n", items, ready);

  std::atomic<bool> loaded = false;
  int builds = 0;
  std::thread builder([&] {
    for (; !loaded; ++builds) Build(searcher);
  });
  const Figures beside = Load(daemon->address(), daemon->program().pid(), authority, key, request);
  loaded = true;
  builder.join();
  std::printf(
      "while it is being built (%d times): %.0f a second, %.2f of those without; p99 %.1f ms\n",
      builds, beside.rate, beside.rate / search.rate, 1e3 * beside.p99);
  return 0;
}

}  // namespace
}  // namespace privatemail::e2e

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "echo") == 0) {
    return privatemail::e2e::RunEcho(argv[2], argv[3], std::strtoul(argv[4], nullptr, 10));
  }
  if (argc != 2) return 2;
  return privatemail::e2e::Measure(argv[0], std::atoi(argv[1]));
}
