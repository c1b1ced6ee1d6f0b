#include "server/engine/row_file.h"

#include "common/index/nearest_others.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

TEST(RowFile, ReadsBackAppendedRows) {
  const TemporaryFolder folder;
  const FloatMatrix rows = FloatMatrix::Random(9, 5);
  ASSERT_OK_AND_ASSIGN(const auto file, RowFile::Create(folder.path(), 5));
  EXPECT_EQ(file->rows(), 0);
  ASSERT_THAT(file->Append(rows.topRows(4)), IsOk());
  ASSERT_THAT(file->Append(FloatMatrix(0, 5)), IsOk());
  ASSERT_THAT(file->Append(rows.bottomRows(5)), IsOk());
  ASSERT_EQ(file->rows(), 9);
  FloatMatrix block(3, 5);
  ASSERT_THAT(file->Read(3, block), IsOk());
  EXPECT_EQ(block, rows.middleRows(3, 3));
  EXPECT_EQ(ReadRows(*file, {8, 0, 8, 2}).value(), rows({8, 0, 8, 2}, Eigen::all));
}

// Approximate and exact.
TEST(RowFile, NearestOthersEqualThoseFromMemory) {
  const TemporaryFolder folder;
  constexpr Eigen::Index kDims = 170;  // two blocks
  const FloatMatrix rows = FloatMatrix::Random(kLargeGallery, kDims);
  ASSERT_LT(RowsOfBlock(kDims), rows.rows());
  ASSERT_OK_AND_ASSIGN(const auto file, RowFile::Create(folder.path(), kDims));
  ASSERT_THAT(file->Append(rows), IsOk());
  const MatrixRows memory(rows);
  for (const int64_t count : {int64_t{20}, kManyQueries}) {
    std::vector<Eigen::Index> queries;
    for (int64_t i = 0; i < count; ++i) queries.push_back(i * rows.rows() / count);
    EXPECT_EQ(NearestOthers(*file, queries, 5, {false}).value(),
              NearestOthers(memory, queries, 5, {false}).value());
  }
}

}  // namespace
}  // namespace privatemail::testing
