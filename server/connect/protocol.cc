#include "server/connect/protocol.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/status.h"

namespace privatemail::server {
namespace {

namespace protobuf = google::protobuf;
using Json = nlohmann::json;

// By the number of the code. A code that gRPC does not define is unknown.
constexpr int kHttpStatuses[] = {200, 499, 500, 400, 504, 404, 409, 403, 429,
                                 400, 409, 400, 501, 500, 503, 500, 401};

absl::StatusCode CodeOf(const grpc::Status& status) { return FromGrpc(status).code(); }

std::string NameOf(absl::StatusCode code) {
  if (code == absl::StatusCode::kCancelled) return "canceled";
  return absl::AsciiStrToLower(absl::StatusCodeToString(code));
}

// A message may repeat bytes of a peer.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ErrorOf(const grpc::Status& status) {
  Json error = {{"code", NameOf(CodeOf(status))}};
  if (!status.error_message().empty()) error["message"] = status.error_message();
  return error;
}

// Refuses what exceeds a size.
class BoundedText final : public protobuf::io::CopyingOutputStream {
 public:
  explicit BoundedText(int64_t max_bytes) : max_bytes_(max_bytes) {}

  bool Write(const void* bytes, int size) override {
    if (static_cast<int64_t>(text.size()) + size > max_bytes_) is_full = true;
    if (!is_full) text.append(static_cast<const char*>(bytes), static_cast<size_t>(size));
    return !is_full;
  }

  std::string text;
  bool is_full = false;

 private:
  const int64_t max_bytes_;
};

// Ends when the conversion is to end.
class StoppableInput final : public protobuf::io::ZeroCopyInputStream {
 public:
  StoppableInput(grpc::ByteBuffer* bytes, const BoundedText& result,
                 const std::atomic<bool>& stopped)
      : input_(bytes), result_(result), stopped_(stopped) {}

  bool Next(const void** data, int* size) override {
    return !stopped_ && !result_.is_full && input_.Next(data, size);
  }
  void BackUp(int count) override { input_.BackUp(count); }
  bool Skip(int count) override { return input_.Skip(count); }
  int64_t ByteCount() const override { return input_.ByteCount(); }

 private:
  grpc::ProtoBufferReader input_;
  const BoundedText& result_;
  const std::atomic<bool>& stopped_;
};

// `convert` has the arguments of protobuf's conversions but for their options.
template <typename Convert>
absl::StatusOr<std::string> ConvertMessage(const protobuf::Descriptor& type,
                                           const grpc::ByteBuffer& from, absl::StatusCode malformed,
                                           int64_t max_bytes, const std::atomic<bool>& stopped,
                                           const Convert& convert) {
  static auto* const types = protobuf::util::NewTypeResolverForDescriptorPool(
      "type", protobuf::DescriptorPool::generated_pool());
  grpc::ByteBuffer bytes = from;  // shares the slices
  BoundedText result(max_bytes);
  StoppableInput input(&bytes, result, stopped);
  std::string problem;
  {
    protobuf::io::CopyingOutputStreamAdaptor output(&result);
    const auto status = convert(types, absl::StrCat("type/", type.full_name()), &input, &output);
    if (!status.ok()) problem = std::string(status.message());
  }  // writes the rest
  if (result.is_full) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the message in the other encoding exceeds the limit of ", max_bytes,
                     " bytes: use application/proto, or ask for less"));
  }
  if (!problem.empty()) {
    return absl::Status(malformed, absl::StrCat("not a ", type.name(), " in JSON: ", problem));
  }
  return std::move(result.text);
}

// Whether an array has null as an element, which protobuf drops, so that others would take its
// place.
bool HasNullInArray(const grpc::ByteBuffer& json) {
  std::vector<grpc::Slice> slices;
  if (!json.Dump(&slices).ok()) return false;
  std::string open;  // brackets
  bool in_text = false, is_escaped = false;
  for (const grpc::Slice& slice : slices) {
    for (const uint8_t byte : slice) {
      if (in_text) {
        in_text = is_escaped || byte != '"';
        is_escaped = !is_escaped && byte == '\\';
      } else if (byte == '"') {
        in_text = true;
      } else if (byte == '[' || byte == '{') {
        open += static_cast<char>(byte);
      } else if (byte == ']' || byte == '}') {
        if (!open.empty()) open.pop_back();
      } else if (byte == 'n' && !open.empty() && open.back() == '[') {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::optional<Codec> ParseContentType(absl::string_view text) {
  const std::string type =
      absl::AsciiStrToLower(absl::StripTrailingAsciiWhitespace(text.substr(0, text.find(';'))));
  for (const bool json : {false, true}) {
    for (const bool enveloped : {false, true}) {
      const Codec codec = {.json = json, .enveloped = enveloped};
      if (type == ContentTypeOf(codec)) return codec;
    }
  }
  return std::nullopt;
}

const char* ContentTypeOf(Codec codec) {
  if (codec.enveloped) {
    return codec.json ? "application/connect+json" : "application/connect+proto";
  }
  return codec.json ? "application/json" : "application/proto";
}

bool Fits(Codec codec, const protobuf::MethodDescriptor& method) {
  return codec.enveloped ? method.client_streaming() || method.server_streaming()
                         : !method.server_streaming();
}

absl::StatusOr<absl::Duration> ParseTimeout(absl::string_view text) {
  int64_t milliseconds = 0;
  if (text.size() > 10 || !absl::c_all_of(text, absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &milliseconds)) {
    return absl::InvalidArgumentError("Connect-Timeout-Ms must be an integer of at most 10 digits");
  }
  return absl::Milliseconds(milliseconds);
}

int HttpStatusOf(const grpc::Status& status) {
  return kHttpStatuses[static_cast<size_t>(CodeOf(status))];
}

std::string ErrorJson(const grpc::Status& status) { return Dump(ErrorOf(status)); }

std::string EndStreamJson(const grpc::Status& status, const std::string& retry_after_ms) {
  Json end = Json::object();
  if (!status.ok()) end["error"] = ErrorOf(status);
  if (!retry_after_ms.empty()) end["metadata"] = {{kRetryAfterMetadata, {retry_after_ms}}};
  return Dump(end);
}

std::string EncodeEnvelope(Envelope envelope) {
  std::string bytes(1, static_cast<char>(envelope.flags));
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(envelope.size >> shift);
  return bytes;
}

Envelope DecodeEnvelope(const char (&bytes)[kEnvelopeBytes]) {
  Envelope envelope = {.flags = static_cast<uint8_t>(bytes[0])};
  for (size_t i = 1; i < kEnvelopeBytes; ++i) {
    envelope.size = envelope.size << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return envelope;
}

absl::StatusOr<grpc::ByteBuffer> JsonToBinary(const protobuf::Descriptor& type,
                                              const grpc::ByteBuffer& json, int64_t max_bytes,
                                              const std::atomic<bool>& stopped) {
  if (HasNullInArray(json)) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a ", type.name(), " in JSON: an array must hold values, but has null"));
  }
  absl::StatusOr<std::string> binary = ConvertMessage(
      type, json, absl::StatusCode::kInvalidArgument, max_bytes, stopped,
      [](auto... arguments) { return protobuf::util::JsonToBinaryStream(arguments...); });
  if (!binary.ok()) return binary.status();
  const grpc::Slice slice(*binary);
  return grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<std::string> BinaryToJson(const protobuf::Descriptor& type,
                                         const grpc::ByteBuffer& bytes, int64_t max_bytes,
                                         const std::atomic<bool>& stopped) {
  protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;  // a count of 0 is an answer
  return ConvertMessage(type, bytes, absl::StatusCode::kInternal, max_bytes, stopped,
                        [&options](auto... arguments) {
                          return protobuf::util::BinaryToJsonStream(arguments..., options);
                        });
}

}  // namespace privatemail::server
