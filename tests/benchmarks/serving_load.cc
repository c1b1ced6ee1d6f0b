#include "tests/benchmarks/serving_load.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/wire/proto_conversions.h"
#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRoundSeconds = 5;
constexpr char kListening[] = "listening on ";

grpc::ChannelArguments OwnConnection() {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return own;
}

// Processor time of a process so far.
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

// The round with the median rate.
Figures Middle(std::vector<Figures> rounds) {
  std::sort(rounds.begin(), rounds.end(),
            [](const Figures& a, const Figures& b) { return a.rate < b.rate; });
  return rounds[rounds.size() / 2];
}

}  // namespace

std::string Text(const std::string& path) { return *ReadFile("file", path, 1 << 20); }

grpc::ByteBuffer BytesOf(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

int RunServer(grpc::Service* service, const std::string& certificate, const std::string& key) {
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({Text(key), Text(certificate)});
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port);
  builder.RegisterService(service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::printf("%s127.0.0.1:%d\n", kListening, port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}

std::string AddressOf(Program* program) {
  return program->ReadLine()->substr(std::strlen(kListening));
}

Caller::Caller(const std::string& address, const std::string& certificate)
    : stub_(grpc::CreateCustomChannel(address, grpc::SslCredentials({certificate, "", ""}),
                                      OwnConnection())) {}

bool Caller::Await() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

bool Caller::Unary(const std::string& method, const std::string& key,
                   const grpc::ByteBuffer& request) {
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + key);
  grpc::ByteBuffer response;
  grpc::Status status;
  const auto call = stub_.PrepareUnaryCall(&context, method, request, &queue_);
  call->StartCall();
  call->Finish(&response, &status, this);
  return Await() && status.ok();
}

bool Caller::Stream(const std::string& method, const std::string& key,
                    const grpc::ByteBuffer& request, size_t* bytes) {
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + key);
  const auto call = stub_.PrepareCall(&context, method, &queue_);
  call->StartCall(this);
  bool sent = Await();
  if (sent) {
    call->WriteLast(request, grpc::WriteOptions(), this);
    sent = Await();
  }
  grpc::ByteBuffer part;
  for (call->Read(&part, this); Await(); call->Read(&part, this)) {
    if (bytes != nullptr) *bytes += part.Length();
  }
  grpc::Status status;
  call->Finish(&status, this);
  return Await() && sent && status.ok();
}

Figures Load(const Served& server, const std::function<bool(Caller&)>& call) {
  std::vector<std::vector<double>> seconds(kCallers);
  std::atomic<int> failures = 0;
  std::vector<std::thread> callers;
  const double before = ProcessorSeconds(server.process);
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
          (ProcessorSeconds(server.process) - before) / static_cast<double>(all.size() + kCallers)};
}

SideBySide LoadInTurns(const Served& ours, const Served& theirs,
                       const std::function<bool(Caller&)>& call) {
  std::vector<Figures> of_ours, of_theirs;
  for (int round = 0; round < kRounds; ++round) {
    of_theirs.push_back(Load(theirs, call));
    of_ours.push_back(Load(ours, call));
  }
  return {Middle(of_ours), Middle(of_theirs)};
}

std::unique_ptr<Daemon> StartDaemon(const TemporaryFolder& folder,
                                    const std::vector<std::string>& more_flags) {
  std::vector<std::string> flags = {"--log-level", "warning"};
  flags.insert(flags.end(), more_flags.begin(), more_flags.end());
  auto daemon = std::make_unique<Daemon>(folder / "data", flags);
  if (!daemon->listening()) std::abort();
  return daemon;
}

ConnectionOptions AdminOf(const Daemon& daemon) {
  ConnectionOptions options;
  options.server = daemon.address();
  options.ca_file = daemon.certificate();
  options.key_file = daemon.admin_key();
  return options;
}

std::string AdminKey(const TemporaryFolder& folder) {
  std::string key = Text(folder / "data/admin.key");
  key.erase(key.find_last_not_of('\n') + 1);
  return key;
}

v1::CreateCollectionRequest NewThingsOf(int anchors, int features, int classes) {
  // The settings of all figures so far.
  v1::CreateCollectionRequest create = NewThings({.alpha = 12, .steps = 5});
  ToProto(SeparatedClasses(anchors, 1, features).vectors, create.mutable_anchors());
  create.mutable_anchor_labels()->Clear();
  for (int i = 0; i < anchors; ++i) create.add_anchor_labels(i % classes);
  return create;
}

void Upload(const AdminClient& admin, const std::string& collection, const FloatMatrix& rows,
            int classes) {
  Eigen::Index sent = 0;
  const auto filled = admin.UpsertItems([&](v1::UpsertItemsRequest* message) {
    if (sent == rows.rows()) return false;
    message->set_collection(collection);
    for (const Eigen::Index last = std::min(rows.rows(), sent + 5000); sent < last; ++sent) {
      v1::Item* item = message->add_items();
      item->set_id(absl::StrCat("item-", 10'000'000 + sent));
      item->set_label(static_cast<int32_t>(sent % classes));
      item->mutable_features()->Assign(rows.row(sent).data(), rows.row(sent).data() + rows.cols());
    }
    return true;
  });
  if (!filled.ok()) std::abort();
}

void Build(const AdminClient& admin, const std::string& collection) {
  // Labels of the rows are not those of their clouds.
  const auto built = admin.BuildEmbedding(
      collection, [](const auto& /*progress*/) {}, /*accept_misalignment=*/true);
  if (!built.ok()) std::abort();
}

}  // namespace privatemail::e2e
