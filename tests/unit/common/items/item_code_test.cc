#include "common/items/item_code.h"

#include <cmath>

#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

constexpr CellCode kCodes[] = {CellCode::kFloat16, CellCode::kScalar8};

FloatMatrix UnitRows(int rows, int dim) {
  FloatMatrix units = FloatMatrix::Random(rows, dim);
  units.rowwise().normalize();
  return units;
}

PublicParameters Parameters(CellCode code, int64_t dim) {
  PublicParameters parameters;
  parameters.feature_dim = dim;
  parameters.cell_code = code;
  return parameters;
}

std::string Encoded(const PublicParameters& parameters, const FloatMatrix& rows) {
  std::string bytes;
  for (Eigen::Index row = 0; row < rows.rows(); ++row) {
    AppendItemCode(parameters, rows.row(row), &bytes);
  }
  return bytes;
}

TEST(ItemCode, ErrorStaysWithinDocumentedBound) {
  for (const int dim : {1, 3, 128}) {
    FloatMatrix rows = UnitRows(500, dim);
    rows(0, 0) =
        1 + std::ldexp(1.F, -11);  // halfway between two half-precision values: the worst case
    rows(1, 0) = std::ldexp(1.F, -25);
    rows(2, 0) = 0;
    for (const CellCode code : kCodes) {
      const PublicParameters parameters = Parameters(code, dim);
      const std::string bytes = Encoded(parameters, rows);
      ASSERT_EQ(static_cast<int64_t>(bytes.size()), 500 * ItemCodeBytes(parameters));
      ASSERT_OK_AND_ASSIGN(const FloatMatrix back, DecodeItemCodes(parameters, bytes));
      ASSERT_EQ(back.rows(), 500);
      for (Eigen::Index i = 0; i < 500; ++i) {
        const double largest = rows.row(i).cwiseAbs().maxCoeff();
        for (Eigen::Index c = 0; c < dim; ++c) {
          const double value = rows(i, c);
          const double bound = code == CellCode::kFloat16
                                   ? std::max(std::ldexp(std::abs(value), -11), std::ldexp(1., -25))
                                   : largest / 254 * (1 + 1e-5);
          EXPECT_LE(std::abs(back(i, c) - value), bound) << value;
        }
      }
    }
  }
}

// IEEE 754's examples of half precision, and bytes by hand.
TEST(ItemCode, MatchesDocumentedBytes) {
  EXPECT_EQ(Encoded(Parameters(CellCode::kFloat16, 3), (FloatMatrix(1, 3) << 1, -.5, 0).finished()),
            std::string("\x00\x3c\x00\xb8\x00\x00", 6));
  EXPECT_EQ(
      Encoded(Parameters(CellCode::kScalar8, 3), (FloatMatrix(1, 3) << .5, -.5, .25).finished()),
      std::string("\x00\x00\x00\x3f\x7f\x81\x40", 7));
  EXPECT_EQ(ItemCodeBytes(Parameters(CellCode::kFloat16, 128)), 256);
  EXPECT_EQ(ItemCodeBytes(Parameters(CellCode::kScalar8, 128)), 132);
  EXPECT_EQ(ItemCodeBytes(Parameters(CellCode::kPq8, 128)), 8);
  EXPECT_EQ(ItemCodeBytes(Parameters(CellCode::kPq16, 128)), 16);
  EXPECT_EQ(ItemCodeBytes(Parameters(CellCode::kPq32, 128)), 32);
  EXPECT_EQ(ItemCodeBytes(Parameters(CellCode::kPq64, 128)), 64);
}

TEST(ItemCode, DamagedBytesReturnDataLoss) {
  for (const CellCode code : kCodes) {
    const PublicParameters parameters = Parameters(code, 5);
    std::string bytes = Encoded(parameters, UnitRows(3, 5));
    EXPECT_THAT(DecodeItemCodes(parameters, bytes.substr(1)),
                FailsWith(kDataLoss, "codes must be whole rows of "));
    const bool half = code == CellCode::kFloat16;
    bytes.replace(0, 4, std::string(half ? "\x00\x7c\x00\x00" : "\x00\x00\xc0\x7f", 4));
    EXPECT_THAT(DecodeItemCodes(parameters, bytes), FailsWith(kDataLoss, "codes must decode"));
    ASSERT_OK_AND_ASSIGN(const FloatMatrix none, DecodeItemCodes(parameters, ""));
    EXPECT_EQ(none.rows(), 0);
  }
}

TEST(ItemCode, ZeroRowDecodesToZero) {
  for (const CellCode code : kCodes) {
    const PublicParameters parameters = Parameters(code, 4);
    ASSERT_OK_AND_ASSIGN(const FloatMatrix back,
                         DecodeItemCodes(parameters, Encoded(parameters, FloatMatrix::Zero(2, 4))));
    EXPECT_EQ(back, FloatMatrix::Zero(2, 4));
  }
}

TEST(QuantiseUnitRow, RoundsToNearest) {
  RowVector row(5);
  row << 1, -1, 0, .5 / 16384, -1.49 / 16384;
  const std::vector<int16_t> expected = {16384, -16384, 0, 1, -1};
  EXPECT_EQ(QuantiseUnitRow(row), expected);
}

}  // namespace
}  // namespace privatemail
