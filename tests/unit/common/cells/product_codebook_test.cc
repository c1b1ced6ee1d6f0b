#include "common/cells/product_codebook.h"

#include <faiss/impl/ProductQuantizer.h>

#include <cmath>
#include <functional>
#include <utility>

#include "common/items/item_code.h"
#include "common/wire/proto_conversions.h"
#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

ProductCodebook RandomCodebook(CellCode code, int64_t dim, int64_t centroids_per_part) {
  return {.centroids = FloatMatrix::Random(dim, centroids_per_part),
          .parts = PartsOf(code, centroids_per_part),
          .relative_squared_error = .25};
}

std::string Encoded(const ProductCodebook& codebook, const FloatMatrix& rows) {
  std::string bytes;
  for (Eigen::Index row = 0; row < rows.rows(); ++row) codebook.Append(rows.row(row), &bytes);
  return bytes;
}

// FAISS stores centroids part by part.
faiss::ProductQuantizer OfFaiss(const ProductCodebook& codebook) {
  const auto count = static_cast<size_t>(codebook.centroids_per_part());
  faiss::ProductQuantizer quantizer(static_cast<size_t>(codebook.dim()),
                                    static_cast<size_t>(codebook.parts), count == 16 ? 4 : 8);
  size_t to = 0;
  for (int64_t part = 0; part < codebook.parts; ++part) {
    for (size_t centroid = 0; centroid < count; ++centroid) {
      for (size_t c = 0; c < quantizer.dsub; ++c) {
        const auto row = part * static_cast<int64_t>(quantizer.dsub) + static_cast<int64_t>(c);
        quantizer.centroids[to++] = codebook.centroids(row, static_cast<Eigen::Index>(centroid));
      }
    }
  }
  return quantizer;
}

TEST(ProductCodebook, MatchesBytesOfFaiss) {
  constexpr int kRows = 200;
  for (const CellCode code : {CellCode::kPq8, CellCode::kPq32}) {
    for (const int64_t centroids : {16, 256}) {
      const ProductCodebook codebook = RandomCodebook(code, 192, centroids);
      const faiss::ProductQuantizer quantizer = OfFaiss(codebook);
      ASSERT_EQ(codebook.code_bytes(), static_cast<int64_t>(quantizer.code_size));
      ASSERT_EQ(codebook.code_bytes(), CodeBytes(code, 192));
      const FloatMatrix rows = FloatMatrix::Random(kRows, 192);
      std::string expected(kRows * quantizer.code_size, '\0');
      quantizer.compute_codes(rows.data(), reinterpret_cast<uint8_t*>(expected.data()), kRows);
      EXPECT_EQ(Encoded(codebook, rows), expected);
      FloatMatrix decoded(kRows, 192);
      quantizer.decode(reinterpret_cast<const uint8_t*>(expected.data()), decoded.data(), kRows);
      EXPECT_EQ(codebook.Decode(expected), decoded);
    }
  }
}

// 8 parts of 19 coordinates: 2, 2, 3, 2, 2, 3, 2 and 3 of them.
TEST(ProductCodebook, UnevenPartsUseNearestCentroids) {
  const ProductCodebook codebook = RandomCodebook(CellCode::kPq8, 19, 256);
  const std::vector<int64_t> begins = {0, 2, 4, 7, 9, 11, 14, 16, 19};
  for (size_t part = 0; part < begins.size(); ++part) {
    EXPECT_EQ(codebook.Begin(static_cast<int64_t>(part)), begins[part]);
  }
  const FloatMatrix rows = FloatMatrix::Random(50, 19);
  const FloatMatrix back = codebook.Decode(Encoded(codebook, rows));
  ASSERT_EQ(back.rows(), 50);
  for (size_t part = 0; part + 1 < begins.size(); ++part) {
    const int64_t begin = begins[part];
    const int64_t count = begins[part + 1] - begin;
    const Matrix centroids = codebook.centroids.middleRows(begin, count).cast<double>();
    for (Eigen::Index i = 0; i < 50; ++i) {
      const Vector wanted = rows.row(i).segment(begin, count).cast<double>().transpose();
      const Vector got = back.row(i).segment(begin, count).cast<double>().transpose();
      EXPECT_EQ((centroids.colwise() - got).colwise().squaredNorm().minCoeff(), 0);
      EXPECT_NEAR((centroids.colwise() - wanted).colwise().squaredNorm().minCoeff(),
                  (got - wanted).squaredNorm(), 1e-6);
    }
  }
}

// Each coordinate is a part, and centroid i is i: values are indices.
TEST(ProductCodebook, FirstIndexOfAByteIsLowerHalf) {
  ProductCodebook codebook{.centroids = FloatMatrix(16, 16),
                           .parts = PartsOf(CellCode::kPq8, 16),
                           .relative_squared_error = 0};
  codebook.centroids.rowwise() = Eigen::RowVectorXf::LinSpaced(16, 0, 15);
  const FloatMatrix row =
      (FloatMatrix(1, 16) << 1, 2, 15, 0, 0, 15, 7, 8, 3, 3, 0, 0, 9, 10, 14, 15).finished();
  EXPECT_EQ(Encoded(codebook, row), "\x21\x0f\xf0\x87\x33" + std::string(1, '\0') + "\xa9\xfe");
  EXPECT_EQ(codebook.Decode(Encoded(codebook, row)), row);
}

PublicParameters WithCodebook() {
  Anchors anchors{FloatMatrix::Random(20, 12), {}};
  for (int i = 0; i < 20; ++i) anchors.labels.push_back(i % 2);
  CellPartition halves{.cells = 2, .cell_of_anchor = {}};
  halves.cell_of_anchor = anchors.labels;
  return *MakePublicParameters("4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5", EmbeddingSettings{}, anchors,
                               {}, "vectors", {halves}, CellCode::kPq8,
                               RandomCodebook(CellCode::kPq8, 12, 256));
}

TEST(ProductCodebook, RoundTripPreservesCodebook) {
  const PublicParameters parameters = WithCodebook();
  v1::PublicParameters message;
  ToProto(parameters, &message);
  ASSERT_OK_AND_ASSIGN(const PublicParameters back, FromProto(message));
  EXPECT_EQ(Fingerprint(back), Fingerprint(parameters));
  EXPECT_EQ(back.cell_codebook->centroids, parameters.cell_codebook->centroids);
  EXPECT_EQ(back.cell_codebook->relative_squared_error, .25);
  const Eigen::RowVectorXf row = Eigen::RowVectorXf::Random(12);
  std::string bytes;
  AppendItemCode(parameters, row, &bytes);
  ASSERT_OK_AND_ASSIGN(const FloatMatrix rows, DecodeItemCodes(back, bytes));
  EXPECT_EQ(rows, parameters.cell_codebook->Decode(bytes));
  EXPECT_THAT(DecodeItemCodes(back, bytes.substr(1)),
              FailsWith(kDataLoss, "codes must be whole rows of 8 bytes, but are 7"));
}

TEST(ProductCodebook, FingerprintCoversCodebook) {
  const std::function<void(ProductCodebook*)> changes[] = {
      [](ProductCodebook* c) { c->centroids(11, 255) += 1e-3F; },
      [](ProductCodebook* c) { c->centroids.col(0).swap(c->centroids.col(1)); },
      [](ProductCodebook* c) { c->centroids = c->centroids.leftCols(16).eval(); },
      [](ProductCodebook* c) {
        c->centroids = c->centroids.reshaped<Eigen::RowMajor>(24, 128).eval();
      },
      [](ProductCodebook* c) { c->relative_squared_error = .3; },
  };
  const PublicParameters original = WithCodebook();
  for (const auto& change : changes) {
    PublicParameters parameters = original;
    change(&*parameters.cell_codebook);
    EXPECT_NE(Fingerprint(parameters), Fingerprint(original));
  }
}

TEST(ProductCodebook, InvalidMessageIsRejected) {
  v1::PublicParameters message;
  ToProto(WithCodebook(), &message);
  const auto centroids = [](v1::PublicParameters* m) {
    return m->mutable_cell_codebook()->mutable_centroids();
  };
  const auto shaped = [&](uint32_t rows, uint32_t cols) {
    return [=](v1::PublicParameters* m) {
      centroids(m)->set_rows(rows);
      centroids(m)->set_cols(cols);
      const int64_t values = int64_t{rows} * cols;
      if (values < 12 * 256) centroids(m)->mutable_values()->Truncate(static_cast<int>(values));
    };
  };
  const std::pair<std::function<void(v1::PublicParameters*)>, const char*> faults[] = {
      {[](auto* m) { m->clear_cell_codebook(); }, "cell_codebook must be given where"},
      {[](auto* m) { m->set_cell_code(v1::CELL_CODE_SCALAR8); }, "cell_codebook must not be given"},
      {[](auto* m) {
         m->clear_cell_code();
         m->clear_cell_partitions();
       },
       "cell_codebook must not be given"},
      {[](auto* m) { m->mutable_cell_codebook()->clear_centroids(); }, "cell_codebook.centroids"},
      {[&](auto* m) { centroids(m)->mutable_values()->RemoveLast(); },
       "256 columns but 3071 values"},
      {shaped(1U << 31, 1U << 31), "cell_codebook.centroids"},
      {shaped(256, 12), "cell_codebook.centroids must have 12 rows of 16 or 256 columns"},
      {shaped(12, 128), "16 or 256 columns, but have 12 of 128"},
      {shaped(12, 16), "a row or more for each of 16 parts"},
      {[](auto* m) { m->set_cell_code(v1::CELL_CODE_PQ16); }, "a row or more for each of 16 parts"},
      {[&](auto* m) { centroids(m)->set_values(700, NAN); }, "cell_codebook.centroids"},
      {[&](auto* m) { centroids(m)->set_values(0, INFINITY); }, "cell_codebook.centroids"},
      {[](auto* m) { m->mutable_cell_codebook()->set_relative_squared_error(NAN); },
       "relative_squared_error must be"},
      {[](auto* m) { m->mutable_cell_codebook()->set_relative_squared_error(-.1); },
       "relative_squared_error must be"},
  };
  for (const auto& [spoil, part] : faults) {
    v1::PublicParameters spoilt = message;
    spoil(&spoilt);
    EXPECT_THAT(Message(FromProto(spoilt).status()), ::testing::HasSubstr(part));
  }
}

TEST(ProductCodebook, PartsAreThoseOfTheCode) {
  ProductCodebook fewer = RandomCodebook(CellCode::kPq8, 12, 256);
  fewer.parts = 7;
  EXPECT_THAT(Validate(fewer, CellCode::kPq8, 12), FailsWith(kInvalid, "cell_codebook.parts must"));
}

}  // namespace
}  // namespace privatemail
