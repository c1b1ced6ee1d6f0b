// Callers over TLS beside each other, and what they cost their server.
#ifndef PRIVATEMAIL_TESTS_BENCHMARKS_SERVING_LOAD_H_
#define PRIVATEMAIL_TESTS_BENCHMARKS_SERVING_LOAD_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/service_type.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "privatemail/transport.h"
#include "common/base/matrix.h"
#include "tests/e2e/load_certificates.h"
#include "tests/e2e/programs.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::e2e {

inline constexpr int kCallers = 16;
inline constexpr int kRounds = 3;

// Of a file, which must be there.
std::string Text(const std::string& path);

grpc::ByteBuffer BytesOf(const google::protobuf::MessageLite& message);

// Serves on a port of its own, with TLS, until it is killed; says where on standard output.
int RunServer(grpc::Service* service, const std::string& certificate, const std::string& key);

// Where a program that does so listens.
std::string AddressOf(Program* program);

// One connection, which knows bytes alone: what a client makes of an answer is not the server's
// work. Whether the answer came, whole.
class Caller {
 public:
  Caller(const std::string& address, const std::string& authority);

  bool Unary(const std::string& method, const std::string& key, const grpc::ByteBuffer& request);
  // Adds the answer's bytes to `bytes` unless it is null.
  bool Stream(const std::string& method, const std::string& key, const grpc::ByteBuffer& request,
              size_t* bytes = nullptr);

 private:
  bool Await();

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

// Calls a second, and how long single ones take.
struct Figures {
  double rate = 0;
  double p50 = 0;  // seconds
  double p99 = 0;
  double processor = 0;  // seconds of the server's a call
};

struct Served {
  std::string address;
  pid_t process = 0;
  std::string authority;  // PEM
};

// kCallers for some seconds, each with a connection of its own that does `call` again and again.
Figures Load(const Served& server, const std::function<bool(Caller&)>& call);

struct SideBySide {
  Figures ours;
  Figures theirs;
};

// Both in turns, so that they meet the same machine; the round in the middle of each.
SideBySide LoadInTurns(const Served& ours, const Served& theirs,
                       const std::function<bool(Caller&)>& call);

// A daemon over the folder's "data" that has started, with the certificates.
std::unique_ptr<Daemon> StartDaemon(const TemporaryFolder& folder, const Certificates& certificates,
                                    const std::vector<std::string>& more_flags = {});

// As its administrator.
ConnectionOptions AdminOf(const Daemon& daemon, const TemporaryFolder& folder,
                          const Certificates& certificates);

std::string AdminKey(const TemporaryFolder& folder);

// The collection "things" around so many anchors of classes that come in turn.
v1::CreateCollectionRequest NewThingsOf(int anchors, int features, int classes);

// Uploads rows of classes that come in turn under the ids item-10000000, ...
void Upload(const Transport& admin, const std::string& collection, const FloatMatrix& rows,
            int classes);

// Aborts where it fails.
void Build(const Transport& admin, const std::string& collection);

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_BENCHMARKS_SERVING_LOAD_H_
