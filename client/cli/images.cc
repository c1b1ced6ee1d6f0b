#include "client/cli/images.h"

#include <algorithm>
#include <iostream>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client::cli {
namespace {

void ListImages(const char* what, const std::vector<SkippedImage>& images) {
  constexpr size_t kMaxListed = 4;
  for (const SkippedImage& image : absl::MakeConstSpan(images).subspan(0, kMaxListed)) {
    std::cerr << what << " " << Printable(image.id) << ": " << Printable(image.reason) << "\n";
  }
  if (images.size() > kMaxListed) {
    std::cerr << what << " " << images.size() - kMaxListed << " more\n";
  }
}

}  // namespace

void AddExtractorOptions(CLI::App* command, ExtractorOptions* options) {
  command->add_option(
      "--model", options->model,
      "ONNX model for images, a file or the name of an installed one: mobilenet_v2. A name with a "
      "slash or .onnx is a file; built-in descriptor if absent. NAME.toml beside "
      "NAME.onnx or the collection says how it takes images");
}

void AddFeaturesFolderOption(CLI::App* command, ExtractorOptions* options) {
  command->add_option(
      "--features-folder", options->features_folder,
      "Existing folder that keeps the features of every image, in the clear, by a digest "
      "of the file, so that they are not extracted again, even after an interruption");
}

absl::StatusOr<std::unique_ptr<FeatureExtractor>> CreateExtractor(const ExtractorOptions& options) {
  const std::optional<OnnxOptions> kept = OnnxOptionsOf(options.collection);
  if (options.model.empty()) {
    if (!kept.has_value()) return MakeBuiltInExtractor();
    return absl::FailedPreconditionError(
        absl::StrCat("--model must be given: the collection's features come from ",
                     Printable(options.collection)));
  }
  OnnxOptions onnx;
  const absl::StatusOr<std::string> path = FindModel(options.model);
  if (!path.ok()) {
    return WithNote(path.status(),
                    "; `cmake --install` installs mobilenet_v2, and the source has it as "
                    "deploy/demo/mobilenet_v2_imagenet_128px_features.onnx");
  }
  if (kept.has_value()) {
    onnx = *kept;
    onnx.path = *path;
  } else {
    PM_ASSIGN_OR_RETURN(onnx, ReadModelProfile(*path));
  }
  return MakeOnnxExtractor(onnx);
}

absl::Status ExtractInParts(const ImageFolder& folder, const ExtractorOptions& options, size_t part,
                            absl::FunctionRef<absl::Status(FolderFeatures)> use) {
  ListImages("skipped", folder.skipped);
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 256);
  PM_ASSIGN_OR_RETURN(const Extractors extractors,
                      MakeExtractors([&] { return CreateExtractor(options); }, threads));
  std::unique_ptr<FeatureCache> cache;
  if (!options.features_folder.empty()) {
    PM_ASSIGN_OR_RETURN(cache, FeatureCache::Open(options.features_folder,
                                                  extractors[0]->identity(), extractors[0]->dim()));
  }
  ProgressBar bar("pictures");
  const absl::Span<const FolderImage> images = folder.images;
  for (size_t first = 0; first < images.size(); first += part) {
    const auto show = [&](int64_t done, int64_t) {
      bar.Show(static_cast<int64_t>(first) + done, std::ssize(images));
    };
    PM_ASSIGN_OR_RETURN(
        FolderFeatures features,
        ExtractFolder(images.subspan(first, part), extractors,
                      {.cache = cache.get(), .progress = show, .cancelled = options.cancelled}));
    PM_RETURN_IF_ERROR(use(std::move(features)));
  }
  return absl::OkStatus();
}

absl::StatusOr<FolderFeatures> ExtractFolderFeatures(const ImageFolder& folder,
                                                     const ExtractorOptions& options) {
  FolderFeatures features;
  PM_RETURN_IF_ERROR(ExtractInParts(folder, options, folder.images.size(), [&](FolderFeatures all) {
    features = std::move(all);
    return absl::OkStatus();
  }));
  ListImages("rejected", features.rejected);
  if (!features.ids.empty()) return features;
  return absl::InvalidArgumentError(
      absl::StrCat("none of the ", folder.images.size(),
                   " images could be described; the first: ", features.rejected[0].reason));
}

absl::StatusOr<LocalGallery> LocalGallery::Create(const std::string& folder,
                                                  const ExtractorOptions& extractor) {
  LocalGallery gallery;
  PM_ASSIGN_OR_RETURN(gallery.folder_, ListImageFolder(folder));
  PM_ASSIGN_OR_RETURN(gallery.features_, ExtractFolderFeatures(gallery.folder_, extractor));
  PM_ASSIGN_OR_RETURN(gallery.unit_rows_, UnitRows(folder, gallery.features_.features));
  return gallery;
}

std::vector<ReportImage> LocalGallery::Nearest(const Eigen::RowVectorXf& features, int64_t k,
                                               const std::set<std::string>& classes) const {
  const Matrix query = features.cast<double>().normalized();
  std::vector<ReportImage> nearest;
  const auto neighbors = NearestRows(query, unit_rows_, k);
  for (const Neighbor& neighbor : neighbors[0]) {
    nearest.push_back(Picture(features_.ids[static_cast<size_t>(neighbor.row)], classes));
  }
  return nearest;
}

ReportImage LocalGallery::Picture(const std::string& id,
                                  const std::set<std::string>& classes) const {
  const auto image = std::find_if(folder_.images.begin(), folder_.images.end(),
                                  [&](const FolderImage& i) { return i.id == id; });
  return {image == folder_.images.end() ? "" : image->path, id,
          classes.contains(id.substr(0, id.find('/')))};
}

}  // namespace privatemail::client::cli
