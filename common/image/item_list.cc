#include "common/image/item_list.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/image/image_header.h"
#include "common/items/item_text.h"

namespace privatemail {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they are");

constexpr size_t kItemHeadBytes = sizeof(uint32_t) + sizeof(int32_t) + sizeof(uint16_t);

template <typename Value>
char* Put(Value value, char* out) {
  std::memcpy(out, &value, sizeof(value));
  return out + sizeof(value);
}

char* PutBytes(absl::string_view bytes, char* out) {
  std::memcpy(out, bytes.data(), bytes.size());
  return out + bytes.size();
}

template <typename Value>
Value Take(absl::string_view* bytes) {
  Value value;
  std::memcpy(&value, bytes->data(), sizeof(value));
  bytes->remove_prefix(sizeof(value));
  return value;
}

std::string Checksum(uint32_t group, uint32_t list, absl::string_view content) {
  Sha256 sum;
  sum.Add({reinterpret_cast<const char*>(&group), sizeof(group)});
  sum.Add({reinterpret_cast<const char*>(&list), sizeof(list)});
  sum.Add(content);
  return sum.Digest().substr(0, kListChecksumBytes);
}

void Finish(uint32_t group, uint32_t list, const v1::ListGroup& of, char* end, char* out) {
  char* const last = out + of.list_bytes();
  std::memset(end, 0, static_cast<size_t>(last - end));
  char* const content = out + kListChecksumBytes;
  PutBytes(Checksum(group, list, {content, static_cast<size_t>(last - content)}), out);
}

absl::Status ListError(uint32_t group, uint32_t list, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("list ", list, " of group ", group, " ", why));
}

// The content after the checksum.
absl::StatusOr<absl::string_view> CheckList(const v1::ImageHeader& header, uint32_t group,
                                            uint32_t list, absl::string_view bytes) {
  const v1::ListGroup* of = FindListGroup(header, group);
  if (of == nullptr || list >= of->lists()) return ListError(group, list, "does not exist");
  if (bytes.size() != of->list_bytes()) {
    return ListError(
        group, list,
        absl::StrCat("must have ", of->list_bytes(), " bytes, but has ", bytes.size()));
  }
  const absl::string_view content = bytes.substr(kListChecksumBytes);
  if (Checksum(group, list, content) != bytes.substr(0, kListChecksumBytes)) {
    return ListError(group, list, "does not match its checksum");
  }
  return content;
}

}  // namespace

size_t ItemRecordBytes(uint32_t id_bytes, uint32_t code_bytes) {
  return kItemHeadBytes + id_bytes + code_bytes;
}

void WriteItemList(const v1::ImageHeader& header, uint32_t group, uint32_t list,
                   absl::Span<const ListedItem> items, char* out) {
  char* next = out + kListChecksumBytes;
  for (const ListedItem& item : items) {
    next = Put(item.row, next);
    next = Put(item.label, next);
    next = Put(static_cast<uint16_t>(item.id.size()), next);
    std::memset(PutBytes(item.id, next), 0, header.id_bytes() - item.id.size());
    next = PutBytes(item.code, next + header.id_bytes());
  }
  Finish(group, list, *FindListGroup(header, group), next, out);
}

void WritePayloadList(const v1::ImageHeader& header, uint32_t list,
                      absl::Span<const absl::string_view> payloads, char* out) {
  char* next = out + kListChecksumBytes;
  for (const absl::string_view payload : payloads) {
    next = PutBytes(payload, Put(static_cast<uint32_t>(payload.size()), next));
  }
  Finish(PayloadGroup(header), list, header.payloads(), next, out);
}

absl::StatusOr<std::vector<ListedItem>> ReadItemList(const v1::ImageHeader& header, uint32_t group,
                                                     uint32_t list, absl::string_view bytes) {
  PM_ASSIGN_OR_RETURN(absl::string_view content, CheckList(header, group, list, bytes));
  std::vector<ListedItem> items(FindListGroup(header, group)->rows());
  for (ListedItem& item : items) {
    item.row = Take<uint32_t>(&content);
    item.label = Take<int32_t>(&content);
    const auto id_bytes = Take<uint16_t>(&content);
    item.id = content.substr(0, id_bytes);
    content.remove_prefix(header.id_bytes());
    item.code = content.substr(0, header.code_bytes());
    content.remove_prefix(header.code_bytes());
    if (item.row >= header.items() || id_bytes > header.id_bytes() ||
        !IsUtf8(std::string(item.id))) {
      return ListError(group, list, "has an item that contradicts the header");
    }
  }
  return items;
}

absl::StatusOr<std::vector<absl::string_view>> ReadPayloadList(const v1::ImageHeader& header,
                                                               uint32_t list,
                                                               absl::string_view bytes) {
  const uint32_t group = PayloadGroup(header);
  PM_ASSIGN_OR_RETURN(absl::string_view content, CheckList(header, group, list, bytes));
  const uint64_t rows = header.payloads().rows();
  std::vector<absl::string_view> payloads(std::min(rows, header.items() - list * rows));
  for (absl::string_view& payload : payloads) {
    const uint32_t length = content.size() < 4 ? 0 : Take<uint32_t>(&content);
    if (length > content.size()) return ListError(group, list, "has a payload beyond its end");
    payload = content.substr(0, length);
    content.remove_prefix(length);
  }
  return payloads;
}

}  // namespace privatemail
