// Client time of a cells query without network and ledger: choosing cells (Choose), and ranking
// 10,000 candidates of 128 dimensions (Rank); baseline: decoding them (DecodeAlone).
#include <benchmark/benchmark.h>

#include <optional>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/cells/cell_answer.h"
#include "client/schemes/cells/cell_scheme.h"
#include "common/items/item_code.h"

namespace privatemail::client {
namespace {

constexpr int kDim = 128;
constexpr int kAnchors = 1500;
constexpr int kCells = 100;
constexpr int kCandidates = 10'000;
constexpr int kItemsOfAMessage = 300;  // about what the daemon makes of 64 KiB

FloatMatrix Rows(int count) {
  std::mt19937_64 bits(1);
  std::normal_distribution<float> normal;
  FloatMatrix rows = FloatMatrix::NullaryExpr(count, kDim, [&] { return normal(bits); });
  rows.rowwise().normalize();
  return rows;
}

// 256 centroids; their values do not affect the time.
std::optional<ProductCodebook> CodebookFor(CellCode code) {
  if (!IsProductCode(code)) return std::nullopt;
  return ProductCodebook{
      .centroids = Rows(256).transpose(), .parts = PartsOf(code, 256), .relative_squared_error = 0};
}

PublicParameters Parameters(const Anchors& anchors, CellCode code) {
  CellPartition partition{.cells = kCells, .cell_of_anchor = {}};
  for (int i = 0; i < kAnchors; ++i) partition.cell_of_anchor.push_back(i % kCells);
  return MakePublicParameters("uuid", EmbeddingSettings{}, anchors, {}, "vectors", {partition},
                              code, CodebookFor(code))
      .value();
}

Anchors SomeAnchors() {
  Anchors anchors{Rows(kAnchors), {}};
  for (int i = 0; i < kAnchors; ++i) anchors.labels.push_back(i % 10);
  return anchors;
}

struct Answer {
  v1::RetrieveCellsRequest request;
  std::vector<v1::RetrieveCellsResponse> messages;

  explicit Answer(const PublicParameters& parameters) {
    request.add_cells(3);
    request.set_items(kCandidates);
    const FloatMatrix rows = Rows(kCandidates);
    for (int row = 0; row < kCandidates; ++row) {
      if (row % kItemsOfAMessage == 0) messages.emplace_back();
      messages.back().add_ids(absl::StrCat("item-", row));
      messages.back().add_labels(row % 10);
      AppendItemCode(parameters, rows.row(row), messages.back().mutable_codes());
    }
  }
};

void Choose(benchmark::State& state) {
  const Anchors anchors = SomeAnchors();
  const CellScheme scheme =
      CellScheme::Create(Parameters(anchors, CellCode::kFloat16), anchors).value();
  const Eigen::RowVectorXf query = Rows(1).row(0);
  const CellChoice choice{.cells = kCells, .ask = 10, .focus = 4, .epsilon = 2};
  SecureBits bits;
  for (auto _ : state) {
    const CellMechanism mechanism = CellMechanism::Create(choice).value();
    const std::vector<int64_t> best = scheme.NearestCells(query, 0, choice.focus).value();
    benchmark::DoNotOptimize(mechanism.Choose(best, bits).value().data());
  }
}

void Rank(benchmark::State& state, CellCode code) {
  const PublicParameters parameters = Parameters(SomeAnchors(), code);
  const Answer answer(parameters);
  const CellTarget target{Rows(1).row(0).cast<double>(), 8};
  for (auto _ : state) {
    SearchResult result;
    const absl::Status read =
        ReadCellAnswer(parameters, answer.request, target, answer.messages, &result);
    if (!read.ok()) return state.SkipWithError(std::string(read.message()).c_str());
    benchmark::DoNotOptimize(result.cells->candidates);
  }
}

void DecodeAlone(benchmark::State& state, CellCode code) {
  const PublicParameters parameters = Parameters(SomeAnchors(), code);
  const Answer answer(parameters);
  for (auto _ : state) {
    for (const v1::RetrieveCellsResponse& message : answer.messages) {
      benchmark::DoNotOptimize(DecodeItemCodes(parameters, message.codes()).value().data());
    }
  }
}

BENCHMARK(Choose)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Rank, float16, CellCode::kFloat16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Rank, scalar8, CellCode::kScalar8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Rank, pq32, CellCode::kPq32)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(DecodeAlone, float16, CellCode::kFloat16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(DecodeAlone, scalar8, CellCode::kScalar8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(DecodeAlone, pq32, CellCode::kPq32)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace privatemail::client

BENCHMARK_MAIN();
