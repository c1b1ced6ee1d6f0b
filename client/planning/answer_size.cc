#include "client/planning/answer_size.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>

#include "common/cells/item_code.h"

namespace privatemail::client {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr int64_t kMessageBytes = 1 << 16;
constexpr int64_t kVersionBytes = 1 + 10;  // tag and value: at most

// Tags and lengths of labels and codes, and the versions: at most, and with gRPC's frame of 5
// bytes.
int64_t RestOfMessage(const PublicParameters& parameters) {
  return int64_t{2} * (1 + 5) + (parameters.SendsCoordinates() ? 2 : 1) * kVersionBytes + 5;
}

int64_t LabelBytes(const PublicParameters& parameters) {
  size_t most = 0;
  for (const int32_t label : parameters.slot_labels) {
    most = std::max(most, CodedOutputStream::VarintSize32SignExtended(label));
  }
  return static_cast<int64_t>(most);
}

int64_t ItemBytes(const PublicParameters& parameters, int64_t id_bytes) {
  const auto length =
      static_cast<int64_t>(CodedOutputStream::VarintSize32(static_cast<uint32_t>(id_bytes)));
  return 1 + length + id_bytes + LabelBytes(parameters) + ItemCodeBytes(parameters);
}

}  // namespace

int64_t AnswerBytes(const PublicParameters& parameters, int64_t items, int64_t id_bytes) {
  const int64_t of_items = items * ItemBytes(parameters, id_bytes);
  return of_items + (of_items / kMessageBytes + 1) * RestOfMessage(parameters);
}

int64_t ItemsWithin(const PublicParameters& parameters, int64_t bytes, int64_t id_bytes) {
  int64_t items = 0, more = bytes / ItemBytes(parameters, id_bytes) + 1;  // which have no room
  while (items + 1 < more) {
    const int64_t between = items + (more - items) / 2;
    const bool have_room = AnswerBytes(parameters, between, id_bytes) <= bytes;
    (have_room ? items : more) = between;
  }
  return items;
}

}  // namespace privatemail::client
