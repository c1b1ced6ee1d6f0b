// An image in memory, as one of two operators serves it (PRIVACY.md section 9).
#ifndef PRIVATEMAIL_SERVER_IMAGE_IMAGE_H_
#define PRIVATEMAIL_SERVER_IMAGE_IMAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "privatemail/v1/two_server.pb.h"
#include "server/image/image_maker.h"

namespace privatemail::server {

// An image whose digests were verified, with its lists ready to be fetched. Holds items only, no
// secret of a searcher. Immutable; thread-safe.
//
//   | kept                               | bytes                                       |
//   |------------------------------------|---------------------------------------------|
//   | lists of each group, of all bytes  | lists list_bytes                            |
//   | table, codes, scores               | as their sections                           |
//   | sections of lists and of payloads  | none: they are made of the lists on request |
class Image {
 public:
  // DATA_LOSS naming the part: the header is malformed, a section does not have its size or digest,
  // or contradicts the header. O(bytes kept).
  static absl::StatusOr<std::shared_ptr<const Image>> Create(ImageParts parts);

  // Bytes that an image with this checked header keeps, and that Create takes at most, its parts
  // included.
  static int64_t MemoryToKeep(const v1::ImageHeader& header);
  static int64_t MemoryToCreate(const v1::ImageHeader& header);
  int64_t memory() const { return MemoryToKeep(header_); }

  const v1::ImageHeader& header() const { return header_; }
  const std::string& header_bytes() const { return header_bytes_; }
  const std::string& digest() const { return digest_; }  // 32 bytes

  // A section of the header, if it is kept: table, codes or scores.
  std::optional<absl::string_view> KeptSection(v1::ImageSection section) const;
  const std::string& table() const { return table_; }
  // The bytes of any section of the header, a copy, and the memory that making it takes.
  std::string Section(v1::ImageSection section) const;
  int64_t MemoryOfSection(v1::ImageSection section) const;

  // items x feature_dim; null: the image has no scores.
  const int16_t* scores() const;
  // The lists of a group of the header (FindListGroup), one after the other.
  absl::string_view lists(uint32_t group) const { return lists_[group]; }

 private:
  Image() = default;

  v1::ImageHeader header_;
  std::string header_bytes_;
  std::string digest_;
  std::string table_, codes_, scores_;
  std::vector<std::string> lists_;  // of each group
};

// An image's file.
//
//   | bytes | content                                       |
//   |-------|-----------------------------------------------|
//   | 8     | "\x89PMIMG1\n"                                |
//   | 8     | length of the header, little-endian           |
//   | 32    | SHA-256 of the header: the image's digest     |
//   |       | header                                        |
//   |       | sections in its order, each under its digest  |

// Replaces the file atomically (WriteFileAtomically), readable to its owner alone. In addition to
// the image takes the sections of lists and of payloads.
absl::Status WriteImageFile(const Image& image, const std::string& path);

// The checked header alone, for example to learn MemoryToCreate. NOT_FOUND: no such file.
// FAILED_PRECONDITION: it cannot be read. DATA_LOSS: damaged, or of another length than the header
// says.
absl::StatusOr<v1::ImageHeader> ReadImageFileHeader(const std::string& path);
// The image. The same errors and those of Create. Takes MemoryToCreate.
absl::StatusOr<std::shared_ptr<const Image>> ReadImageFile(const std::string& path);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_IMAGE_IMAGE_H_
