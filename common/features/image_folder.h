// Listing of a folder of images, flat or with one sub-folder a class, and extraction of its
// features.
#ifndef PRIVATEMAIL_COMMON_FEATURES_IMAGE_FOLDER_H_
#define PRIVATEMAIL_COMMON_FEATURES_IMAGE_FOLDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/cancellation.h"
#include "common/base/matrix.h"
#include "common/features/feature_cache.h"
#include "common/features/feature_extractor.h"

namespace privatemail {

inline constexpr int32_t kNoClass = -1;  // of an image in no sub-folder

struct FolderImage {
  std::string path;
  // "class/file.png", or "file.png" without a class: unique in the folder, the same on every
  // machine.
  std::string id;
  int32_t label = kNoClass;  // index into class_names
};

struct SkippedImage {
  std::string id;      // as of an image
  std::string reason;  // human-readable
};

struct ImageFolder {
  std::vector<std::string> class_names;  // sorted; only classes with an image
  std::vector<FolderImage> images;       // sorted by id
  std::vector<SkippedImage> skipped;     // sorted by id, as listed
};

// Lists the images `directory`/class/file and `directory`/file without opening them. Skipped with a
// reason: hidden names, folders in a class, classes without an image, and files that do not end in
// .jpeg .jpg .png .webp (any case).
// - INVALID_ARGUMENT: no such folder, a file, or no image
// - PERMISSION_DENIED: a folder cannot be listed
absl::StatusOr<ImageFolder> ListImageFolder(const std::string& directory);

// Skips the images without a class. INVALID_ARGUMENT: none is left.
absl::Status RequireClasses(const std::string& directory, ImageFolder* folder);

struct FolderFeatures {
  FloatMatrix features;                // one row an accepted image, in folder order
  std::vector<std::string> ids;        // of each row
  std::vector<int32_t> labels;         // of each row: FolderImage.label
  std::vector<SkippedImage> rejected;  // images without a row, in folder order
};

using Extractors = std::vector<std::unique_ptr<FeatureExtractor>>;

// One extractor for each thread, all of one identity. Errors: those of `factory`.
absl::StatusOr<Extractors> MakeExtractors(
    const std::function<absl::StatusOr<std::unique_ptr<FeatureExtractor>>()>& factory, int threads);

struct ExtractionOptions {
  FeatureCache* cache = nullptr;
  // Called after each image, from any thread but one at a time; `done` counts up.
  std::function<void(int64_t done, int64_t total)> progress = nullptr;
  CancelledFunction cancelled = nullptr;
};

// Extracts the features of images, a thread and an image at a time for each extractor; the result
// does not depend on their number. Each thread holds one image and its network's activations, so
// memory does not grow with the images. Unreadable images are rejected one by one.
// - CANCELLED: `options.cancelled` holds
// - FAILED_PRECONDITION: the cache cannot be written
absl::StatusOr<FolderFeatures> ExtractFolder(absl::Span<const FolderImage> images,
                                             const Extractors& extractors,
                                             const ExtractionOptions& options);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_IMAGE_FOLDER_H_
