#include "client/evaluation/image_sets.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/evaluation/data.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

namespace fs = std::filesystem;

bool IsFolder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// The folder of this name in `directory`, or `directory` where there is none.
std::string Within(const std::string& directory, const std::string& name) {
  const fs::path inner = fs::path(directory) / name;
  return IsFolder(inner) ? inner.string() : directory;
}

void Append(const std::string& part, ImageFolder added, ImageFolder* all) {
  for (FolderImage& image : added.images) {
    image.id = absl::StrCat(part, "/", image.id);
    all->images.push_back(std::move(image));
  }
  for (SkippedImage& skipped : added.skipped) {
    all->skipped.push_back({absl::StrCat(part, "/", skipped.id), std::move(skipped.reason)});
  }
}

constexpr size_t kCifarImageBytes = 2 + 3 * 32 * 32;

// planes: 32 x 32 bytes of red, then green, then blue.
std::string Ppm(absl::string_view planes) {
  std::string bytes = "P6\n32 32\n255\n";
  for (size_t pixel = 0; pixel < 32 * 32; ++pixel) {
    for (size_t plane = 0; plane < 3; ++plane) bytes += planes[plane * 32 * 32 + pixel];
  }
  return bytes;
}

absl::Status CheckCifar100(const std::string& path, absl::string_view bytes) {
  if (bytes.empty() || bytes.size() % kCifarImageBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected images of ", kCifarImageBytes,
                                                   " bytes, got ", bytes.size(),
                                                   " bytes, which is no whole number of them"));
  }
  for (size_t image = 0; image < bytes.size() / kCifarImageBytes; ++image) {
    const int label = static_cast<unsigned char>(bytes[image * kCifarImageBytes + 1]);
    if (label < 100) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": image ", image, " has the fine label ", label, ", expected 0 to 99"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageFolder> ListCub200(const std::string& directory) {
  return ListImageFolder(Within(Within(directory, "CUB_200_2011"), "images"));
}

absl::StatusOr<ImageFolder> ListCars196(const std::string& directory) {
  const fs::path root = Within(directory, "car_data");
  if (!IsFolder(root / "train") || !IsFolder(root / "test")) {
    const absl::StatusOr<ImageFolder> folder = ListImageFolder(root.string());
    if (!folder.ok() || folder->class_names.size() > 3) return folder;
    return absl::InvalidArgumentError(absl::StrCat(
        root.string(),
        ": expected a folder for each class, or such folders in train and test, got ",
        folder->class_names.size(), " folders with images; sort the images by class first"));
  }
  PM_ASSIGN_OR_RETURN(ImageFolder train, ListImageFolder((root / "train").string()));
  PM_ASSIGN_OR_RETURN(ImageFolder test, ListImageFolder((root / "test").string()));
  if (train.class_names != test.class_names) {
    return absl::InvalidArgumentError(absl::StrCat(
        root.string(), ": train and test must have the same classes, but have ",
        train.class_names.size(), " and ", test.class_names.size(), " of which some differ"));
  }
  ImageFolder all;
  all.class_names = train.class_names;
  Append("test", std::move(test), &all);
  Append("train", std::move(train), &all);
  return all;
}

absl::StatusOr<ImageFolder> UnpackCifar100(const std::string& path, const std::string& scratch) {
  const std::string folder = Within(path, "cifar-100-binary");
  const std::string file = IsFolder(folder) ? absl::StrCat(folder, "/test.bin") : folder;
  PM_ASSIGN_OR_RETURN(const std::string bytes, ReadFile("CIFAR-100", file, size_t{1} << 30));
  PM_RETURN_IF_ERROR(CheckCifar100(file, bytes));
  for (int label = 0; label < 100; ++label) {
    std::error_code error;
    fs::create_directories(fs::path(scratch) / absl::StrFormat("%02d", label), error);
    if (error) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot make a folder in ", scratch, ": ", error.message()));
    }
  }
  for (size_t image = 0; image < bytes.size() / kCifarImageBytes; ++image) {
    const absl::string_view one(bytes.data() + image * kCifarImageBytes, kCifarImageBytes);
    const std::string name = absl::StrFormat(
        "%s/%02d/%05d.ppm", scratch, static_cast<unsigned char>(one[1]), static_cast<int>(image));
    PM_RETURN_IF_ERROR(WriteFileAtomically(name, Ppm(one.substr(2)), 0600));
  }
  return ListImageFolder(scratch);
}

absl::StatusOr<LabelledRows> DescribeImages(const ImageFolder& folder,
                                            const ExtractorFactory& extractor,
                                            const ProgressCallback& progress) {
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  PM_ASSIGN_OR_RETURN(FolderFeatures described,
                      ExtractFolder(folder, extractor, std::min(threads, 256), progress));
  if (!described.rejected.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(described.rejected.size(), " images could not be described, the first being ",
                     described.rejected[0].id, ": ", described.rejected[0].reason));
  }
  PM_ASSIGN_OR_RETURN(LabelledRows rows,
                      LabelRows(described.features, std::move(described.labels)));
  rows.class_names = folder.class_names;
  return rows;
}

}  // namespace privatemail
