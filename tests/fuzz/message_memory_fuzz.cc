// Fuzzes MessageMemory, which must never be less than the memory of the parsed message.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/wire/message_memory.h"
#include "privatemail/v1/collections.pb.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {
namespace {

template <typename Message>
void Check(const uint8_t* data, int size) {
  google::protobuf::io::ArrayInputStream bytes(data, size);
  const std::optional<int64_t> memory = MessageMemory(*Message::descriptor(), &bytes);
  Message message;
  if (!message.ParseFromArray(data, size)) return;
  if (!memory.has_value() || *memory < static_cast<int64_t>(message.SpaceUsedLong())) std::abort();
}

}  // namespace
}  // namespace privatemail

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  google::protobuf::SetLogHandler(nullptr);  // otherwise logs every text that is not UTF-8
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = static_cast<int>(size);
  privatemail::Check<privatemail::v1::RetrieveRequest>(data, bytes);
  privatemail::Check<privatemail::v1::UpsertItemsRequest>(data, bytes);
  privatemail::Check<privatemail::v1::CreateCollectionRequest>(data, bytes);
  privatemail::Check<privatemail::v1::CountItemsRequest>(data, bytes);  // filters within filters
  return 0;
}
