// The lists of an image, all of one length in their group.
//
//   | bytes     | content                                                                      |
//   |-----------|------------------------------------------------------------------------------|
//   | 8         | the first bytes of SHA-256 over group and list number (4 bytes each) and all |
//   |           | that follows                                                                 |
//   | a record  | of each of header.partitions[group].rows items, or                           |
//   |           | of each row of a list of payloads                                            |
//   |           | zeros up to list_bytes                                                       |
//
//   item:     row (4), label (4), length of the id (2), id, zeros up to id_bytes, code
//   payload:  length (4), bytes
//
// Numbers are little-endian. List c of the payloads holds the rows from c * rows on.
#ifndef PRIVATEMAIL_COMMON_IMAGE_ITEM_LIST_H_
#define PRIVATEMAIL_COMMON_IMAGE_ITEM_LIST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "privatemail/v1/two_server.pb.h"

namespace privatemail {

inline constexpr size_t kListChecksumBytes = 8;

struct ListedItem {
  uint32_t row = 0;
  int32_t label = 0;
  absl::string_view id;    // at most id_bytes
  absl::string_view code;  // code_bytes
};

// Bytes of an item's record.
size_t ItemRecordBytes(uint32_t id_bytes, uint32_t code_bytes);

// Writes one list, of list_bytes bytes. The content must fit.
void WriteItemList(const v1::ImageHeader& header, uint32_t group, uint32_t list,
                   absl::Span<const ListedItem> items, char* out);
void WritePayloadList(const v1::ImageHeader& header, uint32_t list,
                      absl::Span<const absl::string_view> payloads, char* out);

// Reads one list; the result refers to `bytes`. DATA_LOSS naming group and list: another length,
// the checksum does not match, or a record contradicts the header.
absl::StatusOr<std::vector<ListedItem>> ReadItemList(const v1::ImageHeader& header, uint32_t group,
                                                     uint32_t list, absl::string_view bytes);
absl::StatusOr<std::vector<absl::string_view>> ReadPayloadList(const v1::ImageHeader& header,
                                                               uint32_t list,
                                                               absl::string_view bytes);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_IMAGE_ITEM_LIST_H_
