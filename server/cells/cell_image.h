// The stored form of a cell index.
//
//   | bytes        | content                                                            |
//   |--------------|--------------------------------------------------------------------|
//   | 8            | "\x89PMCELL\n"                                                     |
//   | 4, 4         | version of the form (1), number of sections                        |
//   | 8, 8, 8      | n items, their version, version of the embedding                   |
//   | 32           | Fingerprint of the collection's parameters                         |
//   | 16 a section | its offset and length                                              |
//   |              | sections, each from a multiple of 8 on, with zeros before          |
//   | 32           | SHA-256 of all of the above, from a multiple of 8 on               |
//
// Numbers are little-endian, rows ascend by id. Sections:
//
//   | ends of ids, ids, labels         | n uint64, bytes, n int32                       |
//   | codes                            | n ItemCodeBytes                                |
//   | of each partition of K cells:    |                                                |
//   |   cells and distances of items   | n uint32, n floats (ItemCells)                 |
//   |   demand: ends, rows, weights    | K uint64, uint32, floats (Demand::FromCell)    |
#ifndef PRIVATEMAIL_SERVER_CELLS_CELL_IMAGE_H_
#define PRIVATEMAIL_SERVER_CELLS_CELL_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cells/cell_lists.h"
#include "common/embedding/public_parameters.h"
#include "server/store/types.h"

namespace privatemail::server {

// The data that a cell index answers from.
struct CellContents {
  Gallery gallery = {};  // n items without features, of the embedding
  std::vector<PartitionDemand> partitions = {};
  std::string codes = {};  // of the items
  uint64_t embedding_version = 0;
};

// Equal contents, payloads apart, give equal bytes.
std::string WriteCellImage(const PublicParameters& parameters, const CellContents& contents);

// The contents with empty payloads, safe to answer from. DATA_LOSS: damage, another version of the
// form, or other parameters. Takes at most one and a half times the memory that it returns; O(n).
absl::StatusOr<CellContents> ReadCellImage(const PublicParameters& parameters,
                                           absl::string_view image);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CELLS_CELL_IMAGE_H_
