// Fuzzes the reader of stored cells. The first byte chooses whether the checksum is corrected
// first, so that inputs get past it.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/digests.h"
#include "server/cells/cell_image.h"
#include "server/cells/cell_index.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail::server {
namespace {

constexpr size_t kSumBytes = 32;

// 6 anchors of 3 features in two classes, and two partitions.
PublicParameters Parameters() {
  Anchors anchors{FloatMatrix::Identity(6, 3), {0, 0, 0, 1, 1, 1}};
  anchors.features.bottomRows(3).setIdentity();
  const std::vector<CellPartition> partitions = {{2, {0, 0, 0, 1, 1, 1}}, {3, {0, 1, 2, 0, 1, 2}}};
  return *MakePublicParameters("uuid", EmbeddingSettings{}, anchors, {}, "vectors", partitions,
                               CellCode::kScalar8);
}

// An accepted image can be answered from, and is written as it was read.
void Check(const PublicParameters& parameters, absl::string_view image) {
  absl::StatusOr<CellContents> contents = ReadCellImage(parameters, image);
  if (!contents.ok()) return Require(absl::IsDataLoss(contents.status()));
  Require(WriteCellImage(parameters, *contents) == image);
  const auto index = CellIndex::Restore(parameters, *std::move(contents));
  for (size_t partition = 0; partition < parameters.cell_partitions.size(); ++partition) {
    const auto rows = index->RowsFor(partition, {0, 1}, 1, index->items(), [] { return false; });
    Require(rows.ok());
    for (const int32_t row : *rows) Require(row >= 0 && row < index->items());
  }
}

}  // namespace
}  // namespace privatemail::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace privatemail::server;
  if (size == 0) return 0;
  static const auto parameters = Parameters();
  std::string image(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0 && image.size() > kSumBytes) {
    image.resize(image.size() - kSumBytes);
    image += privatemail::Sha256::Of(image);
  }
  Check(parameters, image);
  return 0;
}
