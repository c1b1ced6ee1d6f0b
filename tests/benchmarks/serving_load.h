// Concurrent callers over TLS, with rate, latency and processor time of their server.
#ifndef PRIVATEMAIL_TESTS_BENCHMARKS_SERVING_LOAD_H_
#define PRIVATEMAIL_TESTS_BENCHMARKS_SERVING_LOAD_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/service_type.h>
#include <sys/types.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/matrix.h"
#include "privatemail/admin_client.h"
#include "tests/e2e/programs.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::e2e {

inline constexpr int kCallers = 16;
inline constexpr int kRounds = 3;

// Content of a file. Aborts if it cannot be read.
std::string Text(const std::string& path);

grpc::ByteBuffer BytesOf(const google::protobuf::MessageLite& message);

// Serves with TLS on a free port until killed; prints the address.
int RunServer(grpc::Service* service, const std::string& certificate, const std::string& key);

// `main` of a benchmark: "echo CERTIFICATE KEY BYTES" runs the baseline, "ITEMS" measures.
template <typename Baseline>
int RunBenchmark(int argc, char** argv, int (*measure)(const char* program, int items)) {
  if (argc == 5 && std::string(argv[1]) == "echo") {
    Baseline baseline(std::strtoul(argv[4], nullptr, 10));
    return RunServer(&baseline, argv[2], argv[3]);
  }
  return argc == 2 ? measure(argv[0], std::atoi(argv[1])) : 2;
}

// Reads the address that RunServer prints.
std::string AddressOf(Program* program);

// One connection that sends and receives bytes without parsing them, so that only the server's work
// is measured. Calls return whether the whole answer came.
class Caller {
 public:
  Caller(const std::string& address, const std::string& certificate);

  bool Unary(const std::string& method, const std::string& key, const grpc::ByteBuffer& request);
  // Adds the answer's bytes to `bytes` unless it is null.
  bool Stream(const std::string& method, const std::string& key, const grpc::ByteBuffer& request,
              size_t* bytes = nullptr);

 private:
  bool Await();

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
  pid_t process = 0;
  std::string certificate;  // PEM
};

// Repeats `call` for some seconds on kCallers connections.
Figures Load(const Served& server, const std::function<bool(Caller&)>& call);

struct SideBySide {
  Figures ours;
  Figures theirs;
};

// Loads both servers in turns, so that they see the same machine; returns the median round of each.
SideBySide LoadInTurns(const Served& ours, const Served& theirs,
                       const std::function<bool(Caller&)>& call);

// Starts a daemon on the folder's "data". Aborts if it does not listen.
std::unique_ptr<Daemon> StartDaemon(const TemporaryFolder& folder,
                                    const std::vector<std::string>& more_flags = {});

ConnectionOptions AdminOf(const Daemon& daemon);

std::string AdminKey(const TemporaryFolder& folder);

// A request for "things"; anchor i has class i mod `classes`.
v1::CreateCollectionRequest NewThingsOf(int anchors, int features, int classes);

// Uploads rows under the ids item-10000000, ...; row i has class i mod `classes`.
void Upload(const AdminClient& admin, const std::string& collection, const FloatMatrix& rows,
            int classes);

// Aborts on failure.
void Build(const AdminClient& admin, const std::string& collection);

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_BENCHMARKS_SERVING_LOAD_H_
