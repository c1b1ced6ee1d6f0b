// A folder of images, one sub-folder a class, and the features of all of them.
#ifndef PRIVATEMAIL_COMMON_FEATURES_IMAGE_FOLDER_H_
#define PRIVATEMAIL_COMMON_FEATURES_IMAGE_FOLDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/features/feature_extractor.h"

namespace privatemail {

struct FolderImage {
  std::string path;   // to open it
  std::string id;     // "class/file.png": unique in the folder, the same on every machine
  int32_t label = 0;  // index into class_names
};

struct SkippedImage {
  std::string id;      // "class/file.txt", or "file" beside the classes
  std::string reason;  // for people
};

struct ImageFolder {
  std::vector<std::string> class_names;  // sorted; only classes with an image
  std::vector<FolderImage> images;       // sorted by id
  std::vector<SkippedImage> skipped;     // sorted by id
};

// The images two levels down: `directory`/class/file. Anything else is skipped and listed with a
// reason: hidden names, files beside the classes, folders in a class, classes without an image, and
// files whose end is none of .png .jpg .jpeg .bmp .webp .tif .tiff .ppm .pgm (in any case). Files
// are not opened. NOT_FOUND: no such folder. INVALID_ARGUMENT: a file, a folder without
// sub-folders, or one without a single image. PERMISSION_DENIED: a folder cannot be listed.
absl::StatusOr<ImageFolder> ListImageFolder(const std::string& directory);

struct FolderFeatures {
  FloatMatrix features;                // one row an image that could be described, in folder order
  std::vector<std::string> ids;        // of each row
  std::vector<int32_t> labels;         // of each row: index into the folder's class_names
  std::vector<SkippedImage> rejected;  // the images that have no row, in folder order, and why
};

// Called once for each thread: extractors are not thread-safe. All it makes must have one identity.
using ExtractorFactory = std::function<absl::StatusOr<std::unique_ptr<FeatureExtractor>>()>;
// Called after every image, from any of the threads but never from two at a time; `done` counts up.
using ProgressCallback = std::function<void(int64_t done, int64_t total)>;

// The features of every image, with up to `threads` threads (1..256; OpenCV may use more inside a
// network). The result does not depend on their number. An image that cannot be read is rejected
// alone. `progress` may be empty. Errors: those of `factory`; INVALID_ARGUMENT for `threads` out of
// range, or when no image at all could be described (the message gives the first reason).
absl::StatusOr<FolderFeatures> ExtractFolder(const ImageFolder& folder,
                                             const ExtractorFactory& factory, int threads,
                                             const ProgressCallback& progress);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_IMAGE_FOLDER_H_
