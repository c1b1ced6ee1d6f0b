// The gallery's pictures on this machine: what a search without privacy would find.
#ifndef PRIVATEMAIL_CLIENT_CLI_LOCAL_GALLERY_H_
#define PRIVATEMAIL_CLIENT_CLI_LOCAL_GALLERY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/inputs.h"
#include "client/cli/report.h"
#include "common/base/matrix.h"

namespace privatemail::client::cli {

// Immutable. Sees the targets, so it asks nobody but itself.
class LocalGallery {
 public:
  // Describes every picture of a folder. Errors: those of ListImageFolder, DescribeFolder,
  // UnitRows.
  static absl::StatusOr<LocalGallery> Describe(const std::string& folder,
                                               const ExtractorOptions& extractor);

  // The k pictures nearest to the features, nearest first.
  std::vector<ReportImage> Nearest(const Eigen::RowVectorXf& features, int64_t k,
                                   const std::string& class_name) const;

  // The picture of an id, "class/file.png"; its caption alone where the folder does not have it.
  ReportImage Picture(const std::string& id, const std::string& class_name) const;

 private:
  ImageFolder folder_;
  FolderFeatures described_;
  Matrix unit_;
};

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_LOCAL_GALLERY_H_
