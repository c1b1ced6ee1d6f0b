#include "server/store/postgres/values.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"

namespace privatemail::server::postgres {
namespace {

// Object ids of the types, fixed in pg_type.dat of every version.
constexpr Oid kBytea = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kText = 25;
constexpr Oid kFloat8 = 701;
constexpr Oid kByteaArray = 1001;
constexpr Oid kInt8Array = 1016;

// Big-endian, as all numbers of the protocol.
template <typename Unsigned>
void AppendBigEndian(Unsigned value, std::string* out) {
  for (int shift = 8 * (sizeof(Unsigned) - 1); shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(static_cast<unsigned char>(value >> shift)));
  }
}

uint64_t ReadBigEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

// array_recv: dimensions, whether NULLs occur, type of the elements, length and first index of the
// dimension; then each element after its length.
std::string ArrayHeader(Oid element, size_t count) {
  std::string bytes;
  AppendBigEndian<uint32_t>(count == 0 ? 0 : 1, &bytes);
  AppendBigEndian<uint32_t>(0, &bytes);
  AppendBigEndian<uint32_t>(element, &bytes);
  if (count == 0) return bytes;
  AppendBigEndian<uint32_t>(static_cast<uint32_t>(count), &bytes);
  AppendBigEndian<uint32_t>(1, &bytes);
  return bytes;
}

}  // namespace

Parameters& Parameters::Add(Oid type, std::string value) {
  types_.push_back(type);
  values_.push_back(std::move(value));
  return *this;
}

Parameters& Parameters::Int(int64_t value) {
  std::string bytes;
  AppendBigEndian(static_cast<uint64_t>(value), &bytes);
  return Add(kInt8, std::move(bytes));
}

Parameters& Parameters::Double(double value) {
  std::string bytes;
  AppendBigEndian(std::bit_cast<uint64_t>(value), &bytes);
  return Add(kFloat8, std::move(bytes));
}

Parameters& Parameters::Text(absl::string_view value) { return Add(kText, std::string(value)); }

Parameters& Parameters::Bytes(absl::string_view value) { return Add(kBytea, std::string(value)); }

Parameters& Parameters::Ints(absl::Span<const int64_t> values) {
  std::string bytes = ArrayHeader(kInt8, values.size());
  for (const int64_t value : values) {
    AppendBigEndian<uint32_t>(sizeof(value), &bytes);
    AppendBigEndian(static_cast<uint64_t>(value), &bytes);
  }
  return Add(kInt8Array, std::move(bytes));
}

Parameters& Parameters::ByteArrays(absl::Span<const std::string> values) {
  std::string bytes = ArrayHeader(kBytea, values.size());
  for (const std::string& value : values) {
    AppendBigEndian(static_cast<uint32_t>(value.size()), &bytes);
    bytes += value;
  }
  return Add(kByteaArray, std::move(bytes));
}

CopyRows& CopyRows::BeginRow() {
  AppendBigEndian(static_cast<uint16_t>(columns_), &rows_);
  return *this;
}

CopyRows& CopyRows::Int(int64_t value) {
  AppendBigEndian<uint32_t>(sizeof(value), &rows_);
  AppendBigEndian(static_cast<uint64_t>(value), &rows_);
  return *this;
}

CopyRows& CopyRows::Int32(int32_t value) {
  AppendBigEndian<uint32_t>(sizeof(value), &rows_);
  AppendBigEndian(static_cast<uint32_t>(value), &rows_);
  return *this;
}

CopyRows& CopyRows::Bytes(absl::string_view value) {
  AppendBigEndian(static_cast<uint32_t>(value.size()), &rows_);
  absl::StrAppend(&rows_, value);
  return *this;
}

// Header: signature, flags, length of an extension. Trailer: -1 as a number of columns.
std::string CopyRows::Take() {
  static constexpr char kHeader[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";
  static constexpr char kTrailer[] = "\377\377";
  const auto whole = [](const auto& text) { return absl::string_view(text, sizeof(text) - 1); };
  return absl::StrCat(whole(kHeader), std::exchange(rows_, std::string()), whole(kTrailer));
}

absl::string_view Result::Bytes(int row, int column) const {
  return {PQgetvalue(handle_.get(), row, column),
          static_cast<size_t>(PQgetlength(handle_.get(), row, column))};
}

int64_t Result::Int(int row, int column) const {
  const absl::string_view bytes = Bytes(row, column);
  const uint64_t value = ReadBigEndian(bytes);
  switch (bytes.size()) {
    case sizeof(int16_t):
      return static_cast<int16_t>(value);
    case sizeof(int32_t):
      return static_cast<int32_t>(value);
    case sizeof(int64_t):
      return static_cast<int64_t>(value);
    default:
      return 0;
  }
}

double Result::Double(int row, int column) const {
  const absl::string_view bytes = Bytes(row, column);
  return bytes.size() == sizeof(double) ? std::bit_cast<double>(ReadBigEndian(bytes)) : 0;
}

}  // namespace privatemail::server::postgres
