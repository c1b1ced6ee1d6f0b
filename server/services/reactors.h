// Calls as gRPC's callback API wants them.
#ifndef PRIVATEMAIL_SERVER_SERVICES_REACTORS_H_
#define PRIVATEMAIL_SERVER_SERVICES_REACTORS_H_

#include <grpcpp/support/server_callback.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/services/call.h"
#include "server/services/wire.h"

namespace privatemail::server {

// The messages that a caller sends, one after the other.
template <typename Message>
class MessageReader {
 public:
  virtual ~MessageReader() = default;

  // Waits for the next. False: there is none, or what came is none; Call::StreamStatus says which.
  virtual bool Read(Message* message) = 0;
};

// The messages that a caller is sent.
template <typename Message>
class MessageWriter {
 public:
  virtual ~MessageWriter() = default;

  // Waits until the caller has taken enough to be sent more. False: it takes no more;
  // Call::StreamStatus says why.
  bool Write(const Message& message) {
    return WriteBytes(std::make_shared<const std::string>(message.SerializeAsString()));
  }

  // The same for the bytes of one, which are not copied.
  virtual bool WriteBytes(std::shared_ptr<const std::string> bytes) = 0;
};

// What a worker waits for and a thread of gRPC's tells.
class Reaction {
 public:
  void Tell(bool ok) {
    const std::lock_guard<std::mutex> guard(mutex_);
    told_ = true;
    ok_ = ok;
    changed_.notify_one();  // under the lock: whoever waits may end the call at once
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return told_; });
    told_ = false;
    return ok_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool told_ = false;
  bool ok_ = false;
};

// gRPC keeps none of its threads for a call: handlers run on workers, and an answer that its caller
// does not take holds memory and a place, but no thread.
template <typename Reactor>
class ReactorCall : public Reactor, public Call {
 public:
  using Call::Call;

 private:
  void Answer(const grpc::Status& status) final { this->Finish(status); }
  void OnDone() final { delete this; }
};

// One message in, one out.
class UnaryCall final : public ReactorCall<grpc::ServerUnaryReactor> {
 public:
  using ReactorCall::ReactorCall;
};

template <typename Message>
class ReadingCall final : public ReactorCall<grpc::ServerReadReactor<grpc::ByteBuffer>>,
                          public MessageReader<Message> {
 public:
  using ReactorCall<grpc::ServerReadReactor<grpc::ByteBuffer>>::ReactorCall;

  bool Read(Message* message) override {
    const bool came = this->Await([&] {
      this->StartRead(&bytes_);
      return read_.Wait();
    });
    return came && this->Accept(AtNumber(number_++, this->Parse(bytes_, message)));
  }

 private:
  void OnReadDone(bool ok) override { read_.Tell(ok); }

  static absl::Status AtNumber(int64_t number, const absl::Status& status) {
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat("message ", number, " of the stream: ", status.message()));
  }

  grpc::ByteBuffer bytes_;
  int64_t number_ = 0;  // of the message that is to come
  Reaction read_;
};

template <typename Message>
class WritingCall final : public ReactorCall<grpc::ServerWriteReactor<grpc::ByteBuffer>>,
                          public MessageWriter<Message> {
 public:
  using ReactorCall<grpc::ServerWriteReactor<grpc::ByteBuffer>>::ReactorCall;

  bool WriteBytes(std::shared_ptr<const std::string> bytes) override {
    bytes_ = ToWire(std::move(bytes));
    return this->Await([&] {
      this->StartWrite(&bytes_);
      return written_.Wait();
    });
  }

 private:
  void OnWriteDone(bool ok) override { written_.Tell(ok); }

  grpc::ByteBuffer bytes_;
  Reaction written_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_REACTORS_H_
