// Parser of numpy's .npz: a ZIP archive of .npy files.
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#include <zlib.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "common/features/vector_formats.h"

namespace privatemail {
namespace {

constexpr absl::string_view kEndMark("PK\x05\x06", 4), kEntryMark("PK\x01\x02", 4);
constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
constexpr size_t kMaxComment = 65535;

constexpr size_t kHeaderBytes = size_t{1} << 14;  // of an array: more than numpy writes

// Inflates `packed`, of exactly `size` bytes, up to the first `most`.
bool Inflate(absl::string_view packed, size_t size, size_t most, std::string* out) {
  constexpr size_t kMaxRatio = 1032;  // of deflate: a lying length allocates no more
  if (size / kMaxRatio > packed.size()) return false;
  out->resize(std::min(size, most));
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out->data());
  stream.avail_out = static_cast<uInt>(out->size());
  const int ended = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  return stream.total_out == out->size() && (most < size || ended == Z_STREAM_END);
}

// The .npy file of a directory's entry, of an inflated one the first `most` bytes, which is part of
// `bytes` or `inflated`. nullopt: damaged, or of more than 4 GiB.
std::optional<absl::string_view> MemberAt(absl::string_view bytes, size_t entry, size_t most,
                                          std::string* inflated) {
  const auto method = Load<uint16_t>(bytes, entry + 10);
  const auto packed_size = Load<uint32_t>(bytes, entry + 20),
             size = Load<uint32_t>(bytes, entry + 24);
  const size_t local = Load<uint32_t>(bytes, entry + 42);
  if (local > bytes.size() || bytes.size() - local < kLocalBytes) return std::nullopt;
  const size_t data =
      local + kLocalBytes + Load<uint16_t>(bytes, local + 26) + Load<uint16_t>(bytes, local + 28);
  if (data > bytes.size() || packed_size > bytes.size() - data) return std::nullopt;
  const absl::string_view packed = bytes.substr(data, packed_size);
  if (method == 0) return packed;
  if (method != Z_DEFLATED || !Inflate(packed, size, most, inflated)) return std::nullopt;
  return absl::string_view(*inflated);
}

}  // namespace

absl::StatusOr<absl::string_view> ArrayOf(absl::string_view name, absl::string_view bytes,
                                          size_t dimensions, std::string* inflated) {
  const auto damaged = [&] {
    return BadFile(name,
                   "expected an .npz file of less than 4 GiB an array, but it is another or "
                   "is damaged");
  };
  // The directory's end is at the end of the file, before a comment.
  const size_t tail = bytes.size() - std::min(bytes.size(), kEndBytes + kMaxComment);
  const size_t end = bytes.substr(tail).rfind(kEndMark);
  if (end == absl::string_view::npos || bytes.size() - tail - end < kEndBytes) return damaged();
  const auto entries = Load<uint16_t>(bytes, tail + end + 10);
  size_t at = Load<uint32_t>(bytes, tail + end + 16);
  std::vector<std::string> found;
  size_t array = 0;  // the entry of the last one found
  for (int i = 0; i < entries; ++i) {
    if (at > bytes.size() || bytes.size() - at < kEntryBytes ||
        bytes.substr(at, kEntryMark.size()) != kEntryMark) {
      return damaged();
    }
    const size_t name_size = Load<uint16_t>(bytes, at + 28);
    const auto header = MemberAt(bytes, at, kHeaderBytes, inflated);
    if (!header.has_value()) return damaged();
    if (NpyDimensions(*header) == dimensions) {
      found.emplace_back(bytes.substr(at + kEntryBytes, name_size));
      array = at;
    }
    at += kEntryBytes + name_size + Load<uint16_t>(bytes, at + 30) + Load<uint16_t>(bytes, at + 32);
  }
  if (found.size() == 1) {
    const auto member = MemberAt(bytes, array, absl::string_view::npos, inflated);
    if (!member.has_value()) return damaged();
    return *member;
  }
  return BadFile(name, "expected one array of ", dimensions,
                 dimensions == 1 ? " dimension" : " dimensions", ", got ",
                 found.empty() ? "none" : absl::CHexEscape(absl::StrJoin(found, ", ")),
                 ": save the one to read alone, with np.save");
}

}  // namespace privatemail
