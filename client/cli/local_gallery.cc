#include "client/cli/local_gallery.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client::cli {

absl::StatusOr<LocalGallery> LocalGallery::Describe(const std::string& folder,
                                                    const ExtractorOptions& extractor) {
  LocalGallery gallery;
  PM_ASSIGN_OR_RETURN(gallery.folder_, ListImageFolder(folder));
  PM_ASSIGN_OR_RETURN(gallery.described_, DescribeFolder(gallery.folder_, extractor));
  PM_ASSIGN_OR_RETURN(gallery.unit_, UnitRows("--compare-images", gallery.described_.features));
  return gallery;
}

std::vector<ReportImage> LocalGallery::Nearest(const Eigen::RowVectorXf& features, int64_t k,
                                               const std::string& class_name) const {
  const Matrix query = features.cast<double>().normalized();
  std::vector<ReportImage> nearest;
  const auto neighbors = NearestRows(query, unit_, k);
  for (const Neighbor& neighbor : neighbors[0]) {
    nearest.push_back(Picture(described_.ids[static_cast<size_t>(neighbor.row)], class_name));
  }
  return nearest;
}

ReportImage LocalGallery::Picture(const std::string& id, const std::string& class_name) const {
  const auto image = std::find_if(folder_.images.begin(), folder_.images.end(),
                                  [&](const FolderImage& i) { return i.id == id; });
  return {image == folder_.images.end() ? "" : image->path, id,
          id.substr(0, id.find('/')) == class_name};
}

}  // namespace privatemail::client::cli
