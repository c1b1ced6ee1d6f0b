#include "server/store/postgres/embedded_items_encoder.h"

#include "absl/strings/str_cat.h"
#include "server/store/decode.h"
#include "server/store/postgres/connection.h"

namespace privatemail::server::postgres {
namespace {

constexpr uint16_t kEmbeddedColumns = 6;
constexpr size_t kPieceBytes = size_t{1} << 20;

// A column: its length and its value.
template <typename Unsigned>
void AppendValue(Unsigned value, std::string* rows) {
  AppendBigEndian<uint32_t>(sizeof(value), rows);
  AppendBigEndian(value, rows);
}

void AppendBytes(absl::string_view bytes, std::string* rows) {
  AppendBigEndian(static_cast<uint32_t>(bytes.size()), rows);
  absl::StrAppend(rows, bytes);
}

}  // namespace

const char kCopyEmbeddedItems[] =
    "COPY embedded_items (embedding, position, id, label, coordinates, payload) "
    "FROM STDIN (FORMAT binary)";

// Header: signature, flags, length of an extension. Trailer: -1 as a number of columns.
std::string EmbeddedItemsEncoder::Next() {
  static constexpr char kHeader[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";
  static constexpr char kTrailer[] = "\377\377";
  if (done_ == embedding_.ids.size()) return "";
  std::string rows(kHeader, sizeof(kHeader) - 1);
  for (; done_ < embedding_.ids.size() && rows.size() < kPieceBytes; ++done_) {
    const auto row = static_cast<Eigen::Index>(done_);
    AppendBigEndian(kEmbeddedColumns, &rows);
    AppendValue(static_cast<uint64_t>(key_), &rows);
    AppendValue(static_cast<uint64_t>(row), &rows);
    AppendBytes(embedding_.ids[done_], &rows);
    AppendValue(static_cast<uint32_t>(embedding_.labels[done_]), &rows);
    AppendBytes(BytesOf(embedding_.coordinates.row(row).data(), embedding_.coordinates.cols()),
                &rows);
    AppendBytes(embedding_.payloads[done_], &rows);
  }
  return rows.append(kTrailer, sizeof(kTrailer) - 1);
}

}  // namespace privatemail::server::postgres
