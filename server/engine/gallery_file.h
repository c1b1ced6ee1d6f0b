// A gallery out of a store into a file, for builds that memory is not meant for.
#ifndef PRIVATEMAIL_SERVER_ENGINE_GALLERY_FILE_H_
#define PRIVATEMAIL_SERVER_ENGINE_GALLERY_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/point_file.h"
#include "server/store/store.h"

namespace privatemail::server {

struct FiledGallery {
  Gallery columns;                    // without features
  std::unique_ptr<PointFile> points;  // the features, then the anchors'
};

// Reads all items at one moment, some megabytes of features at a time. Errors: those of
// Store::ReadGallery and PointFile. watch: told of the bytes that are in memory, as LoadGallery
// tells it.
absl::StatusOr<FiledGallery> ReadIntoFile(Store& store, const PublicParameters& parameters,
                                          const Anchors& anchors, const std::string& directory,
                                          const Store::LoadWatch& watch = nullptr);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_GALLERY_FILE_H_
