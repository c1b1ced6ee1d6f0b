// The files of images in a data directory.
#ifndef PRIVATEMAIL_SERVER_IMAGE_IMAGE_FILES_H_
#define PRIVATEMAIL_SERVER_IMAGE_IMAGE_FILES_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/image/image_maker.h"

namespace privatemail::server {

// Public; decided by the operator.
struct ImageSettings {
  uint32_t list_items = ImageOptions().list_items;
  bool with_scores = false;
};

// The source of an image. Kept beside its file.
struct ImageOrigin {
  bool made_here = false;
  ImageSettings settings;  // of images made here
  std::string signature;   // of the maker
  std::string signer;      // the maker's public key
};

// For each collection the file of its image, "NAME.image", and its origin, "NAME.DIGEST.json": with
// the digest, so that after a crash each image has its own. Thread-safe for files of other
// collections.
class ImageFiles {
 public:
  // Of images/ in the data directory, which may not be there yet. Removes what a crash left:
  // perhaps vectors of a collection that nobody writes again.
  explicit ImageFiles(const std::string& data_directory);

  std::set<std::string> Names() const;  // of collections with an image
  std::string PathOf(const std::string& name) const;

  // Errors of ReadFileBytes. DATA_LOSS: it is damaged.
  absl::StatusOr<ImageOrigin> ReadOrigin(const std::string& name, absl::string_view digest) const;
  // Makes the folder, too. Errors of WriteFileAtomically.
  absl::Status WriteOrigin(const std::string& name, absl::string_view digest,
                           const ImageOrigin& origin) const;
  void RemoveOrigin(const std::string& name, absl::string_view digest) const;
  // All but this one's: those of images that were replaced, or never written, before a crash.
  void RemoveOtherOrigins(const std::string& name, absl::string_view digest) const;

  // Removes an image with all its origins, also one that cannot be read; false: there was none.
  // FAILED_PRECONDITION: a file stays.
  absl::StatusOr<bool> Remove(const std::string& name) const;

 private:
  std::string OriginPath(const std::string& name, absl::string_view digest) const;

  const std::string folder_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_IMAGE_IMAGE_FILES_H_
