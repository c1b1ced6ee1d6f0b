#include "common/features/image_folder.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/base/validate.h"

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

// Adds the class in `directory` unless it has no image.
absl::Status AddClass(const fs::path& directory, ImageFolder* folder) {
  const std::string class_name = directory.filename().string();
  const auto label = static_cast<int32_t>(folder->class_names.size());
  const size_t images_before = folder->images.size();
  PM_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, SortedEntries(directory));
  for (const fs::path& entry : entries) {
    const std::string id = absl::StrCat(class_name, "/", entry.filename().string());
    std::error_code ignored;  // an inaccessible entry is not a regular file
    if (IsHidden(entry.filename().string())) {
      folder->skipped.push_back({id, "its name begins with a dot"});
    } else if (!fs::is_regular_file(entry, ignored)) {
      folder->skipped.push_back({id, "expected a file in the folder of a class"});
    } else if (!HasImageExtension(entry)) {
      folder->skipped.push_back({id, "its name does not end in .jpeg, .jpg, .png or .webp"});
    } else {
      folder->images.push_back({entry.string(), id, label});
    }
  }
  if (folder->images.size() == images_before) {
    folder->skipped.push_back({class_name, "the folder holds no image"});
  } else {
    folder->class_names.push_back(class_name);
  }
  return absl::OkStatus();
}

// The shared state of the threads that process a folder.
class Extraction {
 public:
  Extraction(const ImageFolder& folder, const ProgressCallback& progress, int dim)
      : folder_(folder),
        progress_(progress),
        features_(folder.images.size(), dim),
        reasons_(folder.images.size()) {}

  // Processes images until none is left. Row i belongs to image i.
  void Work(FeatureExtractor& extractor) {
    const size_t total = folder_.images.size();
    for (size_t i = next_++; i < total; i = next_++) {
      const auto feature = extractor.Extract(folder_.images[i].path);
      if (feature.ok()) {
        features_.row(i) = *feature;
      } else {
        reasons_[i] = std::string(feature.status().message());
      }
      if (progress_) {
        const std::lock_guard lock(mutex_);
        progress_(++done_, static_cast<int64_t>(total));
      }
    }
  }

  // Call once, after the threads have ended.
  FolderFeatures Collect() {
    FolderFeatures result;
    int64_t rows = 0;
    for (size_t i = 0; i < folder_.images.size(); ++i) {
      const FolderImage& image = folder_.images[i];
      if (!reasons_[i].empty()) {
        result.rejected.push_back({image.id, std::move(reasons_[i])});
        continue;
      }
      if (rows != static_cast<int64_t>(i)) features_.row(rows) = features_.row(i);
      ++rows;
      result.ids.push_back(image.id);
      result.labels.push_back(image.label);
    }
    features_.conservativeResize(rows, Eigen::NoChange);
    result.features = std::move(features_);
    return result;
  }

 private:
  const ImageFolder& folder_;
  const ProgressCallback& progress_;
  FloatMatrix features_;              // each row is written by one thread
  std::vector<std::string> reasons_;  // one an image, empty if it has a row
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  int64_t done_ = 0;  // guarded by mutex_
};

// One extractor a thread, all of one identity.
absl::StatusOr<std::vector<std::unique_ptr<FeatureExtractor>>> MakeExtractors(
    const ExtractorFactory& factory, size_t count) {
  std::vector<std::unique_ptr<FeatureExtractor>> extractors(count);
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
  bool has_subfolder = false;
  for (const fs::path& entry : entries) {
    const std::string name = entry.filename().string();
    if (IsHidden(name)) {
      folder.skipped.push_back({name, "its name begins with a dot"});
    } else if (!fs::is_directory(entry, ignored)) {
      folder.skipped.push_back({name, "expected one sub-folder for each class"});
    } else {
      has_subfolder = true;
      PM_RETURN_IF_ERROR(AddClass(entry, &folder));
    }
  }
  if (!has_subfolder || folder.images.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, ": expected one sub-folder of images for each class, but ",
                     has_subfolder ? "no sub-folder holds an image" : "there is no sub-folder"));
  }
  const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  std::sort(folder.images.begin(), folder.images.end(), by_id);
  std::sort(folder.skipped.begin(), folder.skipped.end(), by_id);
  return folder;
}

absl::StatusOr<FolderFeatures> ExtractFolder(const ImageFolder& folder,
                                             const ExtractorFactory& factory, int threads,
                                             const ProgressCallback& progress) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("threads", threads, 1, 256));
  if (folder.images.empty()) return absl::InvalidArgumentError("the folder has no images");
  const size_t workers = std::min<size_t>(threads, folder.images.size());
  PM_ASSIGN_OR_RETURN(const auto extractors, MakeExtractors(factory, workers));
  Extraction extraction(folder, progress, extractors[0]->dim());
  ParallelFor(static_cast<int>(workers), [&](int i) { extraction.Work(*extractors[i]); });
  FolderFeatures result = extraction.Collect();
  if (result.ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("none of the ", folder.images.size(),
                     " images could be described; the first: ", result.rejected[0].reason));
  }
  return result;
}

}  // namespace privatemail
