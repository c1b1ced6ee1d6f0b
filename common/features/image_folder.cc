#include "common/features/image_folder.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <opencv2/core.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/digests.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/base/validate.h"
#include "common/features/image_decoder.h"

namespace privatemail {
namespace {

namespace fs = std::filesystem;

bool HasImageExtension(const fs::path& path) {
  static constexpr absl::string_view kExtensions[] = {".jpeg", ".jpg", ".png", ".webp"};
  const std::string extension = absl::AsciiStrToLower(path.extension().string());
  return std::find(std::begin(kExtensions), std::end(kExtensions), extension) !=
         std::end(kExtensions);
}

bool IsHidden(const std::string& name) { return name[0] == '.'; }

absl::StatusOr<std::vector<fs::path>> SortedEntries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  fs::directory_iterator iterator(directory, error);
  for (; !error && iterator != fs::directory_iterator(); iterator.increment(error)) {
    entries.push_back(iterator->path());
  }
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat(directory.string(), ": cannot be listed: ", error.message()));
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Adds the image, or why it is none.
void AddFile(const fs::path& file, const std::string& id, int32_t label, ImageFolder* folder) {
  std::error_code ignored;  // an inaccessible entry is not a regular file
  if (IsHidden(file.filename().string())) {
    folder->skipped.push_back({id, "its name begins with a dot"});
  } else if (!fs::is_regular_file(file, ignored)) {
    folder->skipped.push_back({id, "it is not a file, and folders in folders are not read"});
  } else if (!HasImageExtension(file)) {
    folder->skipped.push_back({id, "its name does not end in .jpeg, .jpg, .png or .webp"});
  } else {
    folder->images.push_back({file.string(), id, label});
  }
}

// Adds the class in `directory` unless it has no image.
absl::Status AddClass(const fs::path& directory, ImageFolder* folder) {
  const std::string class_name = directory.filename().string();
  const auto label = static_cast<int32_t>(folder->class_names.size());
  const size_t images_before = folder->images.size();
  PM_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, SortedEntries(directory));
  for (const fs::path& entry : entries) {
    AddFile(entry, absl::StrCat(class_name, "/", entry.filename().string()), label, folder);
  }
  if (folder->images.size() == images_before) {
    folder->skipped.push_back({class_name, "the folder holds no image"});
  } else {
    folder->class_names.push_back(class_name);
  }
  return absl::OkStatus();
}

// Between networks that run side by side OpenCV's own threads only compete. Its setting is global:
// the first of several extractions makes it, the last one undoes it.
class SingleThreadedOpenCv {
 public:
  SingleThreadedOpenCv() {
    const std::lock_guard lock(mutex);
    if (running++ > 0) return;
    former = cv::getNumThreads();
    cv::setNumThreads(1);
  }
  ~SingleThreadedOpenCv() {
    const std::lock_guard lock(mutex);
    if (--running == 0) cv::setNumThreads(former);
  }

 private:
  static inline std::mutex mutex;
  static inline int running = 0, former = 0;
};

}  // namespace

absl::StatusOr<ImageFolder> ListImageFolder(const std::string& directory) {
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(directory, ": no such folder"));
  }
  if (!fs::is_directory(directory, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, ": expected a folder of images, but it is a file"));
  }
  PM_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, SortedEntries(directory));
  ImageFolder folder;
  for (const fs::path& entry : entries) {
    const std::string name = entry.filename().string();
    if (fs::is_directory(entry, ignored) && !IsHidden(name)) {
      PM_RETURN_IF_ERROR(AddClass(entry, &folder));
    } else {
      AddFile(entry, name, kNoClass, &folder);
    }
  }
  if (folder.images.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory,
        ": expected images (.jpeg, .jpg, .png or .webp), in it or in one sub-folder for "
        "each class, but there is none"));
  }
  const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  std::sort(folder.images.begin(), folder.images.end(), by_id);
  std::sort(folder.skipped.begin(), folder.skipped.end(), by_id);
  return folder;
}

absl::Status RequireClasses(const std::string& directory, ImageFolder* folder) {
  std::erase_if(folder->images, [&](const FolderImage& image) {
    if (image.label != kNoClass) return false;
    folder->skipped.push_back({image.id, "expected one sub-folder for each class"});
    return true;
  });
  if (!folder->images.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      directory, ": expected one sub-folder of images for each class, but all are in none"));
}

absl::StatusOr<Extractors> MakeExtractors(
    const std::function<absl::StatusOr<std::unique_ptr<FeatureExtractor>>()>& factory,
    int threads) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("threads", threads, 1, 256));
  Extractors extractors(static_cast<size_t>(threads));
  for (auto& extractor : extractors) {
    PM_ASSIGN_OR_RETURN(extractor, factory());
    if (extractor->identity() != extractors[0]->identity()) {
      return absl::InvalidArgumentError(absl::StrCat("expected extractors of one identity, got ",
                                                     extractors[0]->identity(), " and ",
                                                     extractor->identity()));
    }
  }
  return extractors;
}

absl::StatusOr<FolderFeatures> ExtractFolder(absl::Span<const FolderImage> images,
                                             const Extractors& extractors,
                                             const ExtractionOptions& options) {
  const auto total = std::ssize(images);
  FloatMatrix features(total, extractors[0]->dim());  // each row is written by one thread
  std::vector<std::string> reasons(images.size());    // empty: the image has a row
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  int64_t done = 0;  // guarded by mutex
  const auto extract = [&](FeatureExtractor& extractor, int64_t row) -> absl::Status {
    const std::string& path = images[static_cast<size_t>(row)].path;
    std::string& reason = reasons[static_cast<size_t>(row)];
    const auto bytes = ReadFileBytes(path, kMaxImageBytes);
    const std::string sha256 = bytes.ok() && options.cache ? Sha256::Of(*bytes) : "";
    if (auto found = sha256.empty() ? std::nullopt : options.cache->Find(sha256)) {
      features.row(row) = *found;
      return absl::OkStatus();
    }
    const auto feature = bytes.ok() ? extractor.ExtractBytes(path, *bytes) : bytes.status();
    if (!feature.ok()) {
      reason = std::string(feature.status().message());
      return absl::OkStatus();
    }
    features.row(row) = *feature;
    return sha256.empty() ? absl::OkStatus() : options.cache->Add(sha256, *feature);
  };
  const SingleThreadedOpenCv single_threaded;
  PM_RETURN_IF_ERROR(ParallelFor(
      static_cast<int>(extractors.size()),
      [&](int thread, TaskGroup& group) -> absl::Status {
        for (int64_t row = next++; row < total && !group.stopped(); row = next++) {
          PM_RETURN_IF_ERROR(extract(*extractors[static_cast<size_t>(thread)], row));
          if (!options.progress) continue;
          const std::lock_guard lock(mutex);
          options.progress(++done, total);
        }
        return absl::OkStatus();
      },
      options.cancelled ? WorkObserver([&] { return CheckNotCancelled(options.cancelled); })
                        : nullptr));
  FolderFeatures result;
  for (int64_t row = 0; row < total; ++row) {
    const FolderImage& image = images[static_cast<size_t>(row)];
    if (std::string& reason = reasons[static_cast<size_t>(row)]; !reason.empty()) {
      result.rejected.push_back({image.id, std::move(reason)});
      continue;
    }
    features.row(std::ssize(result.ids)) = features.row(row);
    result.ids.push_back(image.id);
    result.labels.push_back(image.label);
  }
  features.conservativeResize(std::ssize(result.ids), Eigen::NoChange);
  result.features = std::move(features);
  return result;
}

}  // namespace privatemail
