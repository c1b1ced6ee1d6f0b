#include "server/connect/exchange.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/services/call.h"

namespace privatemail::server {
namespace {

namespace http = boost::beast::http;

constexpr size_t kMaxFurtherMessageBytes = 4 << 20;
constexpr size_t kMaxProbeBytes = 4 << 10;  // probes need neither key nor place
constexpr size_t kMaxInlineConversionBytes = 8 << 10;

size_t TotalSize(const std::vector<grpc::Slice>& slices) {
  size_t bytes = 0;
  for (const grpc::Slice& slice : slices) bytes += slice.size();
  return bytes;
}

std::vector<grpc::Slice> SlicesOf(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  (void)bytes.Dump(&slices);
  return slices;
}

bool IsEndOfAnswer(const std::vector<grpc::Slice>& answer) {
  return TotalSize(answer) == kEndOfAnswer.size() && answer[0].begin()[0] == kEndOfAnswer[0];
}

// "/package.Service/Method". Null: there is none.
const google::protobuf::MethodDescriptor* FindMethod(absl::string_view path) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(absl::StripPrefix(path, "/"), absl::MaxSplits('/', 1));
  const auto* const service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
      std::string(parts.first));
  return service == nullptr ? nullptr : service->FindMethodByName(std::string(parts.second));
}

std::string RetryAfterOf(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(kRetryAfterMetadata);
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

}  // namespace

void Exchange::Run(std::function<void()> task) {
  boost::asio::post(work_.get_executor(),
                    [self = shared_from_this(), task = std::move(task)] { task(); });
}

template <typename Result>
void Exchange::Convert(size_t bytes, std::function<Result()> convert,
                       std::function<void(Result)> then) {
  if (bytes <= kMaxInlineConversionBytes) return then(convert());
  shared_->conversions.Add(
      [executor = work_.get_executor(), self = shared_from_this(), convert,
       then](const std::atomic<bool>& /*stopped*/) mutable {
        const auto result = std::make_shared<Result>(convert());
        // The exchange ends on its own thread.
        boost::asio::post(executor,
                          [self = std::move(self), then, result] { then(std::move(*result)); });
      },
      absl::ZeroDuration(), /*rank=*/bytes);
}

// ---- the request -------------------------------------------------------------------------------

void Exchange::Start() {
  connection_->SetOnCut([this, self = shared_from_this()] {
    is_cut_ = true;
    context_.TryCancel();
    if (std::exchange(is_delivering_, false)) StartRead(&answer_);
  });
  const auto& request = connection_->request();
  if (request.version() != 11) return Refuse(505, "", "HTTP/1.1 is needed");
  if (HandleOrigin()) return;
  if (request.method() != http::verb::post) {
    const bool is_head = request.method() == http::verb::head;
    return Refuse(405, "Allow: POST\r\n", is_head ? "" : "the method must be POST");
  }
  path_ = std::string(request.target());
  method_ = FindMethod(path_);
  const auto type = request[http::field::content_type];
  const std::optional<Codec> codec = ParseContentType({type.data(), type.size()});
  if (!codec || (method_ != nullptr && !Fits(*codec, *method_))) {
    const char* const types = method_ != nullptr && method_->server_streaming()
                                  ? "application/connect+json, application/connect+proto"
                                  : "application/json, application/proto";
    return Refuse(415, absl::StrCat("Accept-Post: ", types, "\r\n"),
                  absl::StrCat("Content-Type must be one of ", types));
  }
  codec_ = *codec;
  const absl::Status prepared = Prepare();
  prepared.ok() ? BeginCall() : Complete(ToGrpc(prepared));
}

bool Exchange::HandleOrigin() {
  const auto& request = connection_->request();
  const std::string origin(request[http::field::origin]);
  if (origin.empty()) return false;
  if (!shared_->allowed_origins.contains(origin)) {
    Refuse(403, "", "the page's origin is not one of allowed_origins");
    return true;
  }
  headers_ = absl::StrCat("Access-Control-Allow-Origin: ", origin,
                          "\r\nVary: Origin\r\nAccess-Control-Expose-Headers: trailer-",
                          kRetryAfterMetadata, "\r\n");
  if (request.method() != http::verb::options) return false;
  Refuse(200,
         "Access-Control-Allow-Methods: POST\r\nAccess-Control-Allow-Headers: authorization, "
         "content-type, connect-protocol-version, connect-timeout-ms\r\n"
         "Access-Control-Max-Age: 7200\r\n",
         "");
  return true;
}

void Exchange::Refuse(int status, const std::string& header, const std::string& text) {
  absl::StrAppend(&headers_, header);
  Write(status, "text/plain", 0, {grpc::Slice(text.empty() ? "" : text + "\n")},
        [this] { connection_->Finish(connection_->request().keep_alive()); });
}

// Checks the header and sets the context of the call.
absl::Status Exchange::Prepare() {
  const auto& request = connection_->request();
  if (method_ == nullptr) {
    return absl::UnimplementedError("there is no such RPC: a path is /PACKAGE.SERVICE/METHOD");
  }
  const auto version = request["connect-protocol-version"];
  if (!version.empty() && version != "1") {
    return absl::InvalidArgumentError("Connect-Protocol-Version must be 1");
  }
  for (const char* header : {"content-encoding", "connect-content-encoding"}) {
    const auto encoding = request[header];
    if (!encoding.empty() && encoding != "identity") {
      return absl::UnimplementedError(
          "compressed messages are not supported; the encoding must be: identity");
    }
  }
  if (const auto timeout = request["connect-timeout-ms"]; !timeout.empty()) {
    PM_ASSIGN_OR_RETURN(const absl::Duration left, ParseTimeout({timeout.data(), timeout.size()}));
    context_.set_deadline(absl::ToChronoTime(absl::Now() + left));
  }
  if (!codec_.enveloped && connection_->content_length().value_or(0) > MaxMessageBytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the body has ", *connection_->content_length(),
                     " bytes, more than the limit of ", MaxMessageBytes()));
  }
  PM_RETURN_IF_ERROR(AddMetadata("authorization", "authorization"));
  PM_RETURN_IF_ERROR(AddMetadata(kForwardedMetadata, kForwardedMetadata));
  context_.AddMetadata(kCallerMetadata, connection_->peer());
  return absl::OkStatus();
}

absl::Status Exchange::AddMetadata(const char* header, const char* key) {
  const auto [first, last] = connection_->request().equal_range(header);
  for (auto field = first; field != last; ++field) {
    const std::string value(field->value());
    // gRPC would end the process.
    if (!absl::c_all_of(value, absl::ascii_isprint)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the header ", header, " must be printable ASCII"));
    }
    context_.AddMetadata(key, value);
  }
  return absl::OkStatus();
}

void Exchange::BeginCall() {
  self_ = shared_from_this();
  shared_->stub.PrepareBidiStreamingCall(&context_, path_, {}, this);
  AddHold();  // until EndCall, so that operations may start on another thread than gRPC's
  StartCall();
  StartRead(&answer_);
}

void Exchange::EndCall() {
  call_has_ended_ = true;
  RemoveHold();
}

size_t Exchange::MaxMessageBytes() const {
  if (method_->service()->full_name() == "grpc.health.v1.Health") return kMaxProbeBytes;
  if (messages_ > 0) return kMaxFurtherMessageBytes;
  return static_cast<size_t>(shared_->max_message_bytes) / (codec_.json ? 16 : 1);
}

// There is room for the first message.
void Exchange::OnReadInitialMetadataDone(bool ok) {
  if (!ok) return;
  Run([this] {
    const auto receive = [this, self = shared_from_this()] {
      if (call_has_ended_) return;
      if (codec_.enveloped) return ReceiveEnvelope();
      message_bytes_ = MaxMessageBytes() + 1;
      ReceivePiece();
    };
    const auto expect = connection_->request()[http::field::expect];
    if (!absl::EqualsIgnoreCase({expect.data(), expect.size()}, "100-continue")) return receive();
    connection_->Write("HTTP/1.1 100 Continue\r\n\r\n", {}, receive);
  });
}

void Exchange::ReceiveEnvelope() {
  connection_->Read(envelope_, kEnvelopeBytes, [this, self = shared_from_this()](size_t bytes) {
    if (bytes == 0) return EndMessages();
    const Envelope envelope = DecodeEnvelope(envelope_);
    if (bytes < kEnvelopeBytes) {
      return Fail(absl::InvalidArgumentError("the body ends within an envelope"));
    }
    if (envelope.flags != 0) {
      return Fail(absl::InvalidArgumentError(absl::StrCat(
          "the flags of an envelope must be 0 in a request without compression, but are ",
          envelope.flags)));
    }
    if (messages_ > 0 && !method_->client_streaming()) {
      return Fail(absl::InvalidArgumentError("this RPC takes one message, but more came"));
    }
    if (envelope.size > MaxMessageBytes()) {
      return Fail(absl::ResourceExhaustedError(
          absl::StrCat("message ", messages_, " of the stream has ", envelope.size,
                       " bytes, more than the limit of ", MaxMessageBytes())));
    }
    message_bytes_ = envelope.size;
    ReceivePiece();
  });
}

void Exchange::ReceivePiece() {
  const size_t left =
      std::min(message_bytes_, codec_.enveloped
                                   ? message_bytes_
                                   : connection_->content_length().value_or(message_bytes_)) -
      received_bytes_;
  if (left == 0) return HaveMessage();
  const size_t size = std::min(left, Connection::kPieceBytes);
  piece_ = grpc::Slice(grpc_slice_malloc(size), grpc::Slice::STEAL_REF);
  connection_->Read(reinterpret_cast<char*>(const_cast<uint8_t*>(piece_.begin())), size,
                    [this, size, self = shared_from_this()](size_t bytes) {
                      if (call_has_ended_) return;
                      received_bytes_ += bytes;
                      if (bytes > 0) pieces_.push_back(piece_.sub(0, bytes));
                      if (bytes < size && codec_.enveloped) {
                        return Fail(absl::InvalidArgumentError("the body ends within a message"));
                      }
                      if (!codec_.enveloped && received_bytes_ > MaxMessageBytes()) {
                        return Fail(absl::ResourceExhaustedError(absl::StrCat(
                            "the body exceeds the limit of ", MaxMessageBytes(), " bytes")));
                      }
                      bytes < size ? HaveMessage() : ReceivePiece();
                    });
}

void Exchange::HaveMessage() {
  const grpc::ByteBuffer message(pieces_.data(), pieces_.size());
  const size_t bytes = received_bytes_;
  pieces_.clear();
  received_bytes_ = 0;
  ++messages_;
  if (!codec_.json) return Send(message);
  using Binary = absl::StatusOr<grpc::ByteBuffer>;
  Convert<Binary>(
      bytes,
      [this, message] {
        return JsonToBinary(*method_->input_type(), message, shared_->max_message_bytes,
                            call_has_ended_);
      },
      [this](Binary binary) { Send(std::move(binary)); });
}

void Exchange::Send(absl::StatusOr<grpc::ByteBuffer> message) {
  if (call_has_ended_) return;
  if (!message.ok()) return Fail(message.status());
  request_ = *std::move(message);
  if (codec_.enveloped) {
    // The body of a single message must end after it.
    method_->client_streaming() ? StartWrite(&request_) : ReceiveEnvelope();
  } else {
    EndMessages();
  }
}

void Exchange::OnWriteDone(bool ok) {
  if (!ok || !codec_.enveloped || !method_->client_streaming()) return;
  Run([this] {
    if (!call_has_ended_) ReceiveEnvelope();
  });
}

void Exchange::EndMessages() {
  if (call_has_ended_) return;
  if (codec_.enveloped && method_->client_streaming()) return StartWritesDone();
  if (messages_ == 0) return Fail(absl::InvalidArgumentError("the body must have a message"));
  StartWriteLast(&request_, grpc::WriteOptions());
}

// ---- the response ------------------------------------------------------------------------------

void Exchange::OnReadDone(bool ok) {
  Run([this, ok] { HaveAnswer(ok); });
}

void Exchange::HaveAnswer(bool ok) {
  std::vector<grpc::Slice> answer = ok ? SlicesOf(answer_) : std::vector<grpc::Slice>();
  if (!ok) return EndCall();
  if (IsEndOfAnswer(answer) || !error_.ok()) return StartRead(&answer_);
  if (!codec_.json) return Deliver(std::move(answer));
  using Text = absl::StatusOr<std::string>;
  Convert<Text>(
      TotalSize(answer),
      [this, bytes = answer_] {
        return BinaryToJson(*method_->output_type(), bytes, shared_->max_message_bytes,
                            call_has_ended_);
      },
      [this](Text text) {
        if (text.ok()) return Deliver({grpc::Slice(*text)});
        Fail(text.status());
        StartRead(&answer_);
      });
}

void Exchange::Deliver(std::vector<grpc::Slice> answer) {
  answer_.Clear();
  if (is_cut_) return StartRead(&answer_);
  is_delivering_ = true;
  Write(200, ContentTypeOf(codec_), 0, std::move(answer), [this] {
    is_delivering_ = false;
    StartRead(&answer_);  // of the next answer, or of the end, since this one is delivered
  });
}

void Exchange::OnDone(const grpc::Status& status) {
  Run([this, status] {
    self_ = nullptr;
    if (is_cut_) return;
    Complete(error_.ok() ? status : ToGrpc(error_));
  });
}

void Exchange::Fail(const absl::Status& error) {
  error_ = error;
  context_.TryCancel();
}

void Exchange::Complete(const grpc::Status& status) {
  const bool keep_alive = connection_->request().keep_alive();
  const auto finish = [this, keep_alive] { connection_->Finish(keep_alive); };
  const std::string retry_after = RetryAfterOf(context_);
  if (codec_.enveloped) {
    return Write(200, ContentTypeOf(codec_), kEndStreamFlag,
                 {grpc::Slice(EndStreamJson(status, retry_after))}, finish);
  }
  if (has_header_) return finish();
  if (!retry_after.empty()) {
    absl::StrAppend(&headers_, "trailer-", kRetryAfterMetadata, ": ", retry_after, "\r\n");
  }
  Write(HttpStatusOf(status), "application/json", 0, {grpc::Slice(ErrorJson(status))}, finish);
}

void Exchange::Write(int status, const char* type, uint8_t flags, std::vector<grpc::Slice> body,
                     std::function<void()> done) {
  const size_t bytes = TotalSize(body);
  std::string head;
  if (!std::exchange(has_header_, true)) {
    head = absl::StrCat(connection_->Head(status), headers_, "Content-Type: ", type, "\r\n");
    codec_.enveloped ? absl::StrAppend(&head, "Transfer-Encoding: chunked\r\n\r\n")
                     : absl::StrAppend(&head, "Content-Length: ", bytes, "\r\n\r\n");
  }
  if (codec_.enveloped) {
    absl::StrAppend(&head, absl::Hex(bytes + kEnvelopeBytes), "\r\n",
                    EncodeEnvelope({flags, static_cast<uint32_t>(bytes)}));
    body.emplace_back(flags == kEndStreamFlag ? "\r\n0\r\n\r\n" : "\r\n");
  }
  connection_->Write(std::move(head), std::move(body),
                     [self = shared_from_this(), done = std::move(done)] { done(); });
}

HttpServer::Serve ServeRpcs(std::set<std::string> allowed_origins, int64_t max_message_bytes,
                            std::shared_ptr<grpc::Channel> channel) {
  const std::shared_ptr<SharedByExchanges> shared(
      new SharedByExchanges{.allowed_origins = std::move(allowed_origins),
                            .max_message_bytes = max_message_bytes,
                            .stub = grpc::GenericStub(std::move(channel))});
  return [shared](std::shared_ptr<Connection> connection) {
    std::make_shared<Exchange>(std::move(connection), shared.get())->Start();
  };
}

}  // namespace privatemail::server
