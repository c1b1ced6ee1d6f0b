// The making of images, which two operators serve (PRIVACY.md section 9), from a cell index.
#ifndef PRIVATEMAIL_SERVER_IMAGE_IMAGE_MAKER_H_
#define PRIVATEMAIL_SERVER_IMAGE_IMAGE_MAKER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/embedding/public_parameters.h"
#include "common/numerics/row_source.h"
#include "privatemail/v1/two_server.pb.h"
#include "server/cells/cell_image.h"

namespace privatemail::server {

// A serialised v1.ImageHeader and the sections in its order. Whoever holds it has not checked it.
struct ImageParts {
  std::string header;
  std::vector<std::string> sections;
};

struct ImageOptions {
  uint32_t list_items = 200;  // of every list, at most the image's items
  // n x feature_dim unit rows of the contents' items. Null: an image without scores.
  const RowSource* unit_rows = nullptr;
  // Gets a header with all groups and the sizes of all sections, payloads at most, before more than
  // ids and labels is made: list_items times the number of cells can exceed any memory. Its error
  // is returned. Null: no check.
  std::function<absl::Status(const v1::ImageHeader&)> check_memory = nullptr;
};

// The image of a cell index's contents. Equal inputs give equal bytes on every machine.
//   hidden:  rows of the contents that are left out, one value a row; null: none. The others are
//            numbered anew, ascending by id.
//   lists:   the items of the cell by total demand, then by distance to its centroid; then others
//            by the demand of the cell's queries; then others by total demand. Unlike CellOrder's,
//            lists of near cells have little in common, because a query fetches several of them.
// Takes less than Image::MemoryToCreate of the image and 16 bytes a row of the contents. Errors of
// RowSource and check_memory, and
// - FAILED_PRECONDITION: no item is left; no cells; cells with coordinates instead of codes; more
//   than kMaxPayloadBytes of payloads; a field that the header cannot express (named), for example
//   scores of more than kMaxScoreDim values
// - INVALID_ARGUMENT: list_items is 0
// - CANCELLED: `stopped` became true
absl::StatusOr<ImageParts> MakeImage(const PublicParameters& parameters,
                                     const CellContents& contents, const std::vector<bool>* hidden,
                                     const ImageOptions& options, const std::atomic<bool>& stopped);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_IMAGE_IMAGE_MAKER_H_
