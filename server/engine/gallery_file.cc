#include "server/engine/gallery_file.h"

#include <utility>

#include "common/base/status_macros.h"

namespace privatemail::server {

absl::StatusOr<FiledGallery> ReadIntoFile(Store& store, const PublicParameters& parameters,
                                          const Anchors& anchors, const std::string& directory,
                                          const Store::LoadWatch& watch) {
  FiledGallery gallery;
  int64_t bytes = 0;
  PM_ASSIGN_OR_RETURN(gallery.points, PointFile::Create(directory, parameters.feature_dim));
  PM_RETURN_IF_ERROR(store.ReadGallery(parameters, [&](int64_t, Gallery part) -> absl::Status {
    const FloatMatrix features = std::exchange(part.features, FloatMatrix());
    bytes += BytesOf(part);
    if (watch) PM_RETURN_IF_ERROR(watch(bytes));
    AppendRows(std::move(part), &gallery.columns);
    return gallery.points->Append("items", features);
  }));
  PM_RETURN_IF_ERROR(gallery.points->Append("anchors", anchors.features));
  return gallery;
}

}  // namespace privatemail::server
