#include "server/store/postgres/embedded_items.h"

#include "server/store/decode.h"
#include "server/store/postgres/values.h"

namespace privatemail::server::postgres {
namespace {

constexpr int kColumns = 6;
constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

const char kCopyEmbeddedItems[] =
    "COPY embedded_items (embedding, position, id, label, coordinates, payload) "
    "FROM STDIN (FORMAT binary)";

std::string EmbeddedItemsEncoder::Next() {
  if (done_ == items_.ids.size()) return "";
  CopyRows rows(kColumns);
  for (; done_ < items_.ids.size() && rows.size() < kPieceBytes; ++done_) {
    const auto row = static_cast<Eigen::Index>(done_);
    rows.BeginRow().Int(key_).Int(items_.first + row).Bytes(items_.ids[done_]);
    rows.Int32(items_.labels[done_]);
    rows.Bytes(BytesOf(items_.coordinates->row(row).data(), items_.coordinates->cols()));
    rows.Bytes(items_.payloads[done_]);
  }
  return rows.Take();
}

}  // namespace privatemail::server::postgres
