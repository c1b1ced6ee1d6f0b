#include "tests/testing/canned_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

namespace privatemail::testing {

// Reads to the caller's end, then writes the answer. Deletes itself.
class CannedServer::Reactor final : public grpc::ServerGenericBidiReactor {
 public:
  Reactor(CannedAnswer answer, std::atomic<int64_t>* sent)
      : answer_(std::move(answer)), sent_(sent) {
    StartRead(&bytes_);
  }

  void OnReadDone(bool ok) override {
    if (ok) return StartRead(&bytes_);
    WriteNext();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    WriteNext();
  }
  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    const std::optional<std::string> message = answer_.message(next_++);
    if (!message.has_value()) return Finish(answer_.status);
    const grpc::Slice slice(*message);
    bytes_ = grpc::ByteBuffer(&slice, 1);
    ++*sent_;  // the caller may have it before the write is done
    StartWrite(&bytes_);
  }

  CannedAnswer answer_;
  std::atomic<int64_t>* sent_;
  int64_t next_ = 0;
  grpc::ByteBuffer bytes_;
};

CannedServer::CannedServer() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterCallbackGenericService(this);
  server_ = builder.BuildAndStart();
}

CannedServer::~CannedServer() { server_->Shutdown(std::chrono::system_clock::now()); }

void CannedServer::Answer(const std::string& method, CannedAnswer answer) {
  answers_[method] = std::move(answer);
}

void CannedServer::Answer(const std::string& method, std::vector<std::string> messages,
                          grpc::Status status) {
  auto shared = std::make_shared<const std::vector<std::string>>(std::move(messages));
  const auto nth = [shared](int64_t n) -> std::optional<std::string> {
    if (n >= static_cast<int64_t>(shared->size())) return std::nullopt;
    return (*shared)[static_cast<size_t>(n)];
  };
  Answer(method, CannedAnswer{nth, std::move(status)});
}

grpc::ServerGenericBidiReactor* CannedServer::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const std::string& path = context->method();
  const auto found = answers_.find(path.substr(path.rfind('/') + 1));
  if (found != answers_.end()) return new Reactor(found->second, &sent_);
  return new Reactor({[](int64_t) { return std::nullopt; },
                      {grpc::StatusCode::UNIMPLEMENTED, path + " has no answer"}},
                     &sent_);
}

std::string Repeated(const std::string& bytes, int64_t times) {
  std::string all;
  all.reserve(bytes.size() * static_cast<size_t>(times));
  for (int64_t i = 0; i < times; ++i) all += bytes;
  return all;
}

}  // namespace privatemail::testing
