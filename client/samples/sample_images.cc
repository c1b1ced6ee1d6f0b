#include "client/samples/sample_images.h"

#include <exception>
#include <filesystem>
#include <opencv2/imgcodecs.hpp>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/samples/scene.h"
#include "client/samples/species.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

namespace fs = std::filesystem;

constexpr int kOversampling = 2;  // the picture is painted larger, then averaged down

absl::Status PrepareFolder(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("out_dir must name a folder, but is empty");
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("out_dir must be a folder, but ", path, " is a file"));
  }
  fs::create_directories(path, error);
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("out_dir ", path, " cannot be made: ", error.message()));
  }
  if (!fs::is_empty(path, error) || error) {
    return absl::InvalidArgumentError(
        absl::StrCat("out_dir must be empty, so that no other picture passes for a sample, but ",
                     path, " is not"));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const SampleImageOptions& options) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("classes", options.classes, 2, samples::kMostSpecies));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("per_class", options.per_class, 1, 1000));
  return CheckIntegerBetween("size", options.size, 64, 1024);
}

samples::Picture PaintPicture(const samples::Species& species, int size, samples::Random* random) {
  const int side = kOversampling * size;
  const samples::Scene scene = samples::ImagineScene(random);
  const samples::Pose pose = samples::StrikePose(species.build, static_cast<float>(side), random);
  const samples::Anatomy bird = samples::PoseBird(species.build, pose);
  samples::Picture picture(side, side);
  samples::PaintBehind(scene, species.build.habitat, bird, random, &picture);
  const samples::Picture without_bird = picture.clone();
  samples::PaintBird(species, bird, scene.to_light, random, &picture);
  samples::PaintInFront(scene, species.build.habitat, bird, without_bird, random, &picture);
  return samples::Finish(scene, picture, size, random);
}

absl::Status WritePicture(const fs::path& path, const samples::Picture& picture) {
  std::string reason = "cannot be written";
  try {
    if (cv::imwrite(path.string(), picture)) return absl::OkStatus();
  } catch (const std::exception& error) {
    reason = absl::StrCat(reason, ": ", error.what());
  }
  return absl::PermissionDeniedError(absl::StrCat(path.string(), ": ", reason));
}

}  // namespace

absl::Status WriteSampleImages(const SampleImageOptions& options,
                               const std::function<void(int done, int total)>& progress) {
  PM_RETURN_IF_ERROR(CheckOptions(options));
  PM_RETURN_IF_ERROR(PrepareFolder(options.out_dir));
  const std::vector<samples::Species> all = samples::InventSpecies(options.classes, options.seed);
  int done = 0;
  for (int i = 0; i < options.classes; ++i) {
    const fs::path folder = fs::path(options.out_dir) / all[i].name;
    std::error_code error;
    fs::create_directory(folder, error);
    if (error) {
      return absl::PermissionDeniedError(
          absl::StrCat(folder.string(), " cannot be made: ", error.message()));
    }
    for (int image = 0; image < options.per_class; ++image) {
      samples::Random random(options.seed, 2 + i, image);
      PM_RETURN_IF_ERROR(WritePicture(folder / absl::StrFormat("%03d.png", image),
                                      PaintPicture(all[i], options.size, &random)));
      if (progress) progress(++done, options.classes * options.per_class);
    }
  }
  return absl::OkStatus();
}

}  // namespace privatemail::client
