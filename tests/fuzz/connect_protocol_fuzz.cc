// Fuzzes the gateway's reading of headers, envelopes and messages. A message in JSON that is read
// has a form in JSON that stays the same, and a refusal is the caller's fault.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "privatemail/v1/collections.pb.h"
#include "privatemail/v1/retrieval.pb.h"
#include "server/connect/protocol.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail::server {
namespace {

constexpr int64_t kMaxBytes = 1 << 16;
const std::atomic<bool> kRunning = false;

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

void CheckHeaders(const std::string& text) {
  if (const auto codec = ParseContentType(text)) {
    const std::string again = ContentTypeOf(*codec);
    const auto parsed = ParseContentType(again);
    Require(parsed && parsed->json == codec->json && parsed->enveloped == codec->enveloped);
  }
  if (const auto timeout = ParseTimeout(text); timeout.ok()) {
    Require(*timeout >= absl::ZeroDuration() && *timeout < absl::Seconds(10'000'000));
  }
  if (text.size() < kEnvelopeBytes) return;
  char envelope[kEnvelopeBytes];
  text.copy(envelope, kEnvelopeBytes);
  Require(EncodeEnvelope(DecodeEnvelope(envelope)) == text.substr(0, kEnvelopeBytes));
}

// Binary forms come from this daemon alone: protobuf's printer takes memory without end for a
// packed field that is longer than its message.
void CheckMessage(const google::protobuf::Descriptor& type, const std::string& text) {
  const auto binary = JsonToBinary(type, BufferOf(text), kMaxBytes, kRunning);
  if (!binary.ok()) {
    return Require(absl::IsInvalidArgument(binary.status()) ||
                   absl::IsResourceExhausted(binary.status()));
  }
  Require(static_cast<int64_t>(binary->Length()) <= kMaxBytes);
  const auto json = BinaryToJson(type, *binary, kMaxBytes, kRunning);
  if (!json.ok()) return Require(absl::IsResourceExhausted(json.status()));
  const auto again = JsonToBinary(type, BufferOf(*json), kMaxBytes, kRunning);
  Require(again.ok() && *BinaryToJson(type, *again, kMaxBytes, kRunning) == *json);
}

}  // namespace
}  // namespace privatemail::server

// The first byte chooses the type of the message.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace privatemail::server;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  CheckHeaders(text);
  const google::protobuf::Descriptor* const types[] = {
      privatemail::v1::UpsertItemsRequest::descriptor(),
      privatemail::v1::CreateCollectionRequest::descriptor(),
      privatemail::v1::RetrieveRequest::descriptor(),
      privatemail::v1::CountItemsResponse::descriptor()};
  CheckMessage(*types[data[0] % std::size(types)], text);
  return 0;
}
