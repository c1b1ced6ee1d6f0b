// A gRPC server of encrypted searches in the test's process, which records what it sees and answers
// with faults on demand.
#ifndef PRIVATEMAIL_TESTS_UNIT_CLIENT_SEARCH_ENCRYPTED_SERVER_H_
#define PRIVATEMAIL_TESTS_UNIT_CLIENT_SEARCH_ENCRYPTED_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "privatemail/transport.h"
#include "privatemail/v1/encrypted.grpc.pb.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "tests/testing/encrypted_things.h"

namespace privatemail::client {

class EncryptedServer final : public v1::EncryptedService::Service,
                              public v1::RetrievalService::Service {
 public:
  using Answer = std::vector<v1::SearchEncryptedResponse>;
  using Clock = std::chrono::steady_clock;

  explicit EncryptedServer(EncryptedThings* things) : things_(things) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(static_cast<v1::EncryptedService::Service*>(this));
    builder.RegisterService(static_cast<v1::RetrievalService::Service*>(this));
    server_ = builder.BuildAndStart();
    options.server = absl::StrCat("127.0.0.1:", port);
    options.insecure = true;
  }
  ~EncryptedServer() override { server_->Shutdown(); }

  grpc::Status GetCollection(grpc::ServerContext*, const v1::GetCollectionRequest* request,
                             v1::GetCollectionResponse* response) override {
    const auto arrived = Clock::now();
    *response = things_->Collection();
    if (describe) describe(response);
    Record({"GetCollection", request->SerializeAsString(), arrived, Clock::now()});
    return grpc::Status::OK;
  }

  grpc::Status SearchEncrypted(grpc::ServerContext*, const v1::SearchEncryptedRequest* request,
                               grpc::ServerWriter<v1::SearchEncryptedResponse>* writer) override {
    const auto arrived = Clock::now();
    const auto record = [&] {
      Record({"SearchEncrypted", request->SerializeAsString(), arrived, Clock::now()});
    };
    if (!endings.empty()) {
      const grpc::StatusCode ending = endings.front();
      endings.erase(endings.begin());
      record();
      return {ending, "leaving"};
    }
    const Answer messages = answer ? answer(*request) : things_->Answer(*request);
    for (size_t i = 0; i + 1 < messages.size(); ++i) writer->Write(messages[i]);
    record();  // before the client sees the end
    writer->Write(messages.back());
    return grpc::Status::OK;
  }

  struct Seen {
    std::string call;
    std::string bytes;
    Clock::time_point arrived, answered;
  };
  // Since the last call of this.
  std::vector<Seen> TakeSeen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(seen_, {});
  }
  // The searches among them.
  std::vector<v1::SearchEncryptedRequest> TakeRequests() {
    std::vector<v1::SearchEncryptedRequest> requests;
    for (const Seen& one : TakeSeen()) {
      if (one.call == "SearchEncrypted") requests.emplace_back().ParseFromString(one.bytes);
    }
    return requests;
  }

  ConnectionOptions options;
  std::function<void(v1::GetCollectionResponse*)> describe;         // changes the description
  std::function<Answer(const v1::SearchEncryptedRequest&)> answer;  // instead of the honest one
  std::vector<grpc::StatusCode> endings;                            // of the next searches

 private:
  void Record(Seen seen) {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_.push_back(std::move(seen));
  }

  EncryptedThings* const things_;
  std::mutex mutex_;
  std::vector<Seen> seen_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_UNIT_CLIENT_SEARCH_ENCRYPTED_SERVER_H_
