// Fuzzes MessageMemory, which must never be less than the memory of the parsed message.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstddef>
#include <cstdint>

#include "common/wire/message_memory.h"
#include "privatemail/v1/collections.pb.h"
#include "privatemail/v1/encrypted.pb.h"
#include "privatemail/v1/retrieval.pb.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail {
namespace {

template <typename Message>
void Check(const uint8_t* data, int size) {
  google::protobuf::io::ArrayInputStream bytes(data, size);
  const std::optional<int64_t> memory = MessageMemory(*Message::descriptor(), &bytes);
  Message message;
  if (!message.ParseFromArray(data, size)) return;
  Require(memory.has_value() && *memory >= static_cast<int64_t>(message.SpaceUsedLong()));
}

}  // namespace
}  // namespace privatemail

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = static_cast<int>(size);
  privatemail::Check<privatemail::v1::RetrieveRequest>(data, bytes);
  privatemail::Check<privatemail::v1::UpsertItemsRequest>(data, bytes);
  privatemail::Check<privatemail::v1::CreateCollectionRequest>(data, bytes);
  privatemail::Check<privatemail::v1::SearchEncryptedRequest>(data, bytes);
  privatemail::Check<privatemail::v1::SearchEncryptedResponse>(data, bytes);
  privatemail::Check<privatemail::v1::RowTableBlock>(data, bytes);
  privatemail::Check<privatemail::v1::RowPayloadBlock>(data, bytes);
  privatemail::Check<privatemail::v1::CountItemsRequest>(data, bytes);
  return 0;
}
