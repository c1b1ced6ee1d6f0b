#include "tests/testing/retrieval_oracle.h"

#include <atomic>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/thread_pool.h"
#include "common/base/validate.h"
#include "common/items/item_code.h"
#include "common/numerics/neighbors.h"

namespace privatemail::server {
namespace {

Gallery Stored(const LabelledFeatures& gallery) {
  constexpr int64_t kFirstId = 1'000'000'000;  // equal length, so that ids ascend
  Gallery stored;
  stored.features = gallery.features;
  stored.labels = gallery.labels;
  stored.payloads.resize(gallery.labels.size());
  for (int64_t i = 0; i < std::ssize(gallery.labels); ++i) {
    stored.ids.push_back(absl::StrCat(kFirstId + i));
  }
  return stored;
}

Matrix Decoded(const PublicParameters& parameters, const CellIndex& index) {
  std::string codes;
  for (int64_t row = 0; row < index.items(); ++row) absl::StrAppend(&codes, index.CodeOf(row));
  return DecodeItemCodes(parameters, codes).value().cast<double>();
}

// All rows of `items`, nearest to the query first.
std::vector<int32_t> OrderAround(const Matrix& query, const Matrix& items) {
  std::vector<int32_t> order;
  const auto all = NearestRows(query, items, items.rows());
  for (const Neighbor& one : all.front()) {
    order.push_back(static_cast<int32_t>(one.row));
  }
  return order;
}

}  // namespace

RetrievalOracle::RetrievalOracle(const PublicParameters& parameters, const Anchors& anchors,
                                 const LabelledFeatures& gallery, const LabelledFeatures& targets)
    : parameters_(parameters),
      gallery_(gallery),
      targets_(targets),
      index_(CellIndex::Create(parameters, anchors, Stored(gallery), /*stopped=*/{false}, {},
                               &sample_)) {
  const Matrix items = UnitRows("gallery", gallery.features).value();
  const Matrix queries = UnitRows("targets", targets.features).value();
  const Matrix unit_anchors = UnitRows("anchors", anchors.features).value();
  for (const CellPartition& partition : parameters.cell_partitions) {
    partitions_.push_back(partition.cells);
    std::vector<int64_t>& cells = cells_.emplace_back();
    const Matrix centroids = CellCentroids(partition, unit_anchors);
    for (const std::vector<Neighbor>& nearest : NearestRows(queries, centroids, 1)) {
      cells.push_back(nearest.front().row);
    }
  }
  const Matrix decoded = Decoded(parameters, *index_);
  ranks_.resize(targets.labels.size());
  by_codes_.resize(targets.labels.size());
  ParallelFor(static_cast<int>(queries.rows()), [&](int i) {
    const Matrix query = queries.row(i);
    const std::vector<int32_t> order = OrderAround(query, items);
    std::vector<int32_t>& ranks = ranks_[static_cast<size_t>(i)];
    ranks.resize(order.size());
    for (size_t rank = 0; rank < order.size(); ++rank) {
      ranks[static_cast<size_t>(order[rank])] = static_cast<int32_t>(rank);
    }
    by_codes_[static_cast<size_t>(i)] = OrderAround(query, decoded);
  });
}

CellQuality RetrievalOracle::MeasureQuality() const {
  return index_->Measure(parameters_, sample_, [] { return false; }).value();
}

MeanRetrieval RetrievalOracle::Mean(size_t partition, double epsilon, int64_t answered,
                                    int64_t k) const {
  const int64_t cells = partitions_[partition];
  std::vector<std::vector<bool>> has(static_cast<size_t>(cells),
                                     std::vector<bool>(gallery_.labels.size()));
  for (size_t cell = 0; cell < has.size(); ++cell) {
    const auto rows = index_->RowsFor(partition, {static_cast<uint32_t>(cell)}, epsilon, answered,
                                      [] { return false; });
    for (const int32_t row : rows.value()) has[cell][static_cast<size_t>(row)] = true;
  }
  const double other = 1 / (std::exp(epsilon) + static_cast<double>(cells - 1));
  std::vector<MeanRetrieval> found(targets_.labels.size());
  ParallelFor(static_cast<int>(found.size()), [&](int i) {
    const auto target = static_cast<size_t>(i);
    for (size_t cell = 0; cell < has.size(); ++cell) {
      const bool own = static_cast<int64_t>(cell) == cells_[partition][target];
      const MeanRetrieval one = Found(target, has[cell], k);
      found[target].fidelity += (own ? std::exp(epsilon) * other : other) * one.fidelity;
      found[target].recall += (own ? std::exp(epsilon) * other : other) * one.recall;
    }
  });
  MeanRetrieval mean;
  for (const MeanRetrieval& one : found) {
    mean.fidelity += one.fidelity / static_cast<double>(found.size());
    mean.recall += one.recall / static_cast<double>(found.size());
  }
  return mean;
}

MeanRetrieval RetrievalOracle::Found(size_t target, const std::vector<bool>& has, int64_t k) const {
  MeanRetrieval found;
  int64_t kept = 0;
  for (const int32_t row : by_codes_[target]) {
    const auto item = static_cast<size_t>(row);
    if (!has[item]) continue;
    if (ranks_[target][item] < k) found.fidelity += 1 / static_cast<double>(k);
    if (gallery_.labels[item] == targets_.labels[target]) found.recall = 1;
    if (++kept == k) break;
  }
  return found;
}

}  // namespace privatemail::server
