// The header of an image, which two operators serve (PRIVACY.md section 9), and its signature.
#ifndef PRIVATEMAIL_COMMON_IMAGE_IMAGE_HEADER_H_
#define PRIVATEMAIL_COMMON_IMAGE_IMAGE_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "privatemail/v1/two_server.pb.h"

namespace privatemail {

inline constexpr uint32_t kImageVersion = 1;
// Lists of one group, and fetches in one message.
inline constexpr int64_t kMaxLists = 4096;
inline constexpr int kMaxFetches = 64;
inline constexpr uint64_t kMaxImageItems = uint64_t{1} << 31;
inline constexpr uint64_t kMaxListBytes = uint64_t{1} << 30;
// Of the sections: protobuf's limit, and one for the payloads.
inline constexpr uint64_t kMaxTableBytes = (uint64_t{1} << 31) - 1;
inline constexpr uint64_t kMaxPayloadBytes = uint64_t{1} << 30;

// The digest that names an image: SHA-256 of its header's bytes.
std::string ImageDigest(absl::string_view header);
// The bytes that the maker of an image signs.
std::string ImageSignatureText(absl::string_view digest);

inline constexpr size_t kSignerBytes = 32;  // a public key
inline constexpr size_t kSignatureBytes = 64;

// Checks the maker's signature of the image with this digest. DATA_LOSS: it is not `signer`'s, or
// signer or signature is malformed.
absl::Status CheckImageSignature(absl::string_view digest, absl::string_view signer,
                                 absl::string_view signature);

// Reads a header from a peer. DATA_LOSS naming the field: malformed, of another version, or its
// sizes contradict each other.
absl::StatusOr<v1::ImageHeader> ReadImageHeader(absl::string_view bytes);

// The section's header; null if the image does not have it.
const v1::ImageSectionHeader* FindSection(const v1::ImageHeader& header, v1::ImageSection section);

// The group with this index, payloads after the last partition; null: there is none.
const v1::ListGroup* FindListGroup(const v1::ImageHeader& header, uint32_t group);
// The index of the payloads' group.
uint32_t PayloadGroup(const v1::ImageHeader& header);

// The texts (field 1) and numbers (field 2, packed) of a serialised ImageTable or ImagePayloads,
// counted before it is parsed: a text of two bytes there takes 40 in memory. nullopt: it is
// malformed or has other fields.
struct SectionEntries {
  uint64_t texts = 0;
  uint64_t numbers = 0;
};
std::optional<SectionEntries> CountSectionEntries(absl::string_view bytes);

// Reads ids and labels. DATA_LOSS: they do not have the header's digest, or are not what it says.
absl::StatusOr<v1::ImageTable> ReadImageTable(const v1::ImageHeader& header,
                                              absl::string_view bytes);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_IMAGE_IMAGE_HEADER_H_
