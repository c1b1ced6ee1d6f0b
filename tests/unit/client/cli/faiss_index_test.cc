#include "client/cli/faiss_index.h"

#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/index_factory.h>
#include <faiss/index_io.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <random>

#include "common/base/matrix.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

extern "C" void omp_set_num_threads(int threads);

namespace privatemail::client::cli {
namespace {

constexpr int kIndexDim = 8, kIndexRows = 400;

class FaissIndexTest : public ::testing::Test {
 protected:
  FaissIndexTest() {
    omp_set_num_threads(1);  // OpenMP threads that wait spin, which slows other tests
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    rows_ = FloatMatrix::NullaryExpr(kIndexRows, kIndexDim, [&] { return normal(random); });
  }

  // Writes an index of these rows as FAISS does; with ids 7, 8, ... if it is to have some.
  std::string Write(const char* factory, bool with_ids = false, int rows = kIndexRows) {
    const std::unique_ptr<faiss::Index> index(faiss::index_factory(kIndexDim, factory));
    index->train(kIndexRows, rows_.data());
    std::vector<int64_t> ids(static_cast<size_t>(rows));
    std::iota(ids.begin(), ids.end(), 7);
    if (with_ids) {
      index->add_with_ids(rows, rows_.data(), ids.data());
    } else {
      index->add(rows, rows_.data());
    }
    faiss::write_index(index.get(), (folder_ / "x.index").c_str());
    return folder_ / "x.index";
  }

  const TemporaryFolder folder_;
  FloatMatrix rows_;
};

TEST_F(FaissIndexTest, RowsAndIdsAreThoseThatFaissWrote) {
  const struct {
    const char* factory;
    bool with_ids;
    double tolerance;  // 0: the index is exact
  } cases[] = {{"Flat", false, 0},      {"IDMap,Flat", true, 0},      {"IDMap2,IVF4,Flat", true, 0},
               {"IVF4,Flat", false, 0}, {"IVF4,Flat", true, 0},       {"HNSW8,Flat", false, 0},
               {"SQ8", false, .02},     {"IDMap,IVF4,SQ8", true, .02}};
  for (const auto& [factory, with_ids, tolerance] : cases) {
    SCOPED_TRACE(factory);
    ASSERT_OK_AND_ASSIGN(const FaissIndex index, FaissIndex::Open(Write(factory, with_ids), {}));
    EXPECT_EQ(index.is_exact(), tolerance == 0);
    EXPECT_EQ(index.metric(), Metric::kEuclidean);
    ASSERT_EQ(index.rows(), kIndexRows);
    ASSERT_EQ(index.cols(), kIndexDim);
    FloatMatrix copied(kIndexRows - 3, kIndexDim);
    index.Copy(3, kIndexRows - 3, copied.data());
    EXPECT_LE((copied - rows_.bottomRows(kIndexRows - 3)).cwiseAbs().maxCoeff(), tolerance);
    ASSERT_EQ(index.ids().size(), with_ids ? size_t{kIndexRows} : 0);
    if (with_ids) {
      EXPECT_EQ(index.ids()[5], 12);
    }
  }
}

TEST_F(FaissIndexTest, WhatCannotBeReadNamesTheFile) {
  const std::pair<std::string, const char*> files[] = {
      {Write("LSH", false, 0), "x.index: the index has no vectors"},
      {folder_.Write("text.index", "no index"), "text.index: expected an index file"},
      {folder_ / "none.index", "none.index"}};
  for (const auto& [path, message] : files) {
    EXPECT_THAT(FaissIndex::Open(path, {}), FailsWith(absl::StatusCode::kInvalidArgument, message));
  }
  const std::string path = Write("ITQ4,Flat");  // a transform without an inverse
  EXPECT_THAT(FaissIndex::Open(path, {}),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "x.index: expected an index file that FAISS can read whose vectors can be "
                        "reconstructed, but: "));
  EXPECT_THAT(FaissIndex::Open(path, {"/bin/sh", "-c", "kill -SEGV $$"}),
              FailsWith(absl::StatusCode::kInvalidArgument, "(Segmentation fault)"));
}

}  // namespace
}  // namespace privatemail::client::cli
