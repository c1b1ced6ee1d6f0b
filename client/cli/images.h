// Features of images: the extractor that flags choose, folders, and a local gallery of pictures.
#ifndef PRIVATEMAIL_CLIENT_CLI_IMAGES_H_
#define PRIVATEMAIL_CLIENT_CLI_IMAGES_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/features/feature_extractor.h"
#include "common/features/image_folder.h"

namespace privatemail::client::cli {

// A picture of the gallery or of a query, beside others.
struct ReportImage {
  std::string path;     // file to embed; empty: caption only
  std::string caption;  // "lime/007.jpg"
  bool same_class = false;
};

// --model; without it the built-in descriptor.
struct ExtractorOptions {
  std::string model;
  std::string features_folder;  // empty: features are not kept
  CancelledFunction cancelled;  // polled while a folder is extracted; null: never
  std::string collection;       // identity of its extractor; empty for a new collection
};

void AddExtractorOptions(CLI::App* command, ExtractorOptions* options);
// For commands that extract the features of whole folders.
void AddFeaturesFolderOption(CLI::App* command, ExtractorOptions* options);
// FAILED_PRECONDITION: the collection's features come from a model, but no --model is given.
absl::StatusOr<std::unique_ptr<FeatureExtractor>> CreateExtractor(const ExtractorOptions& options);

// Calls `use` with the features of each `part` images of a folder, which are extracted on all
// cores, behind a progress bar, or come from options.features_folder, which keeps them at once.
// Skipped files are listed on standard error. Errors: those of CreateExtractor, ExtractFolder and
// `use`.
absl::Status ExtractInParts(const ImageFolder& folder, const ExtractorOptions& options, size_t part,
                            absl::FunctionRef<absl::Status(FolderFeatures)> use);
// All parts in one. Lists rejected images on standard error; INVALID_ARGUMENT: every image was
// rejected.
absl::StatusOr<FolderFeatures> ExtractFolderFeatures(const ImageFolder& folder,
                                                     const ExtractorOptions& options);

// The gallery's pictures on this machine, to show the answer of a search without privacy.
// Immutable. Sees the targets and uses no network.
class LocalGallery {
 public:
  // Errors: those of ListImageFolder, ExtractFolderFeatures and UnitRows.
  static absl::StatusOr<LocalGallery> Create(const std::string& folder,
                                             const ExtractorOptions& extractor);

  // The k pictures nearest to the features, nearest first. classes: whose pictures are marked.
  std::vector<ReportImage> Nearest(const Eigen::RowVectorXf& features, int64_t k,
                                   const std::set<std::string>& classes) const;

  // The picture of an id, "class/file.png"; without a path if the folder does not have it.
  ReportImage Picture(const std::string& id, const std::set<std::string>& classes) const;

 private:
  ImageFolder folder_;
  FolderFeatures features_;
  Matrix unit_rows_;
};

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_IMAGES_H_
