#include "server/cells/quality_measurement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/items/item_code.h"

namespace privatemail::server {
namespace {

constexpr int64_t kMaxQueries = 5000;
constexpr uint64_t kSeed = 1;  // of the sample and of the other cells
constexpr int64_t kQueriesAtOnce = 64;

// From kQualityMatches to half the gallery in steps of a factor sqrt(2).
std::vector<int64_t> ItemCounts(int64_t gallery) {
  std::vector<int64_t> counts;
  for (int step = 0;; ++step) {
    const int64_t count = std::llround(kQualityMatches * std::exp2(step / 2.));
    if (count > std::min(gallery / 2, kMaxQualityItems)) return counts;
    counts.push_back(count);
  }
}

// The mean of values in [0, 1].
class RunningMean {
 public:
  void Add(double value) {
    ++count_;
    sum_ += value;
    squares_ += value * value;
  }
  MeasuredMean Rounded() const {
    const double mean = sum_ / count_;
    const double variance = std::max(0., squares_ / count_ - mean * mean) / (count_ - 1);
    return {.value = std::round(mean * 100) / 100,
            .standard_error = std::ceil(std::sqrt(variance) * 1000) / 1000};
  }

 private:
  double count_ = 0, sum_ = 0, squares_ = 0;
};

// Means over requests.
struct QualityMean {
  RunningMean fidelity, recall;

  MeasuredQuality Rounded() const {
    return {.fidelity = fidelity.Rounded(), .recall = recall.Rounded()};
  }
};

// The nearest items of those that have come so far.
class Matches {
 public:
  void Add(float distance, bool is_nearest, bool has_class) {
    if (count_ == matches_.size() && !(distance < matches_[count_ - 1].distance)) return;
    if (count_ < matches_.size()) ++count_;
    size_t at = count_ - 1;
    for (; at > 0 && distance < matches_[at - 1].distance; --at) matches_[at] = matches_[at - 1];
    matches_[at] = {distance, is_nearest, has_class};
  }
  void AddTo(QualityMean* mean) const {
    double nearest = 0;
    bool has_class = false;
    for (size_t i = 0; i < count_; ++i) {
      nearest += matches_[i].is_nearest ? 1 : 0;
      has_class = has_class || matches_[i].has_class;
    }
    mean->fidelity.Add(nearest / kQualityMatches);
    mean->recall.Add(has_class ? 1 : 0);
  }

 private:
  struct Match {
    float distance = 0;
    bool is_nearest = false;
    bool has_class = false;
  };
  std::array<Match, kQualityMatches> matches_ = {};
  size_t count_ = 0;
};

// A cell that a query requests.
struct Request {
  size_t query = 0;  // index of a sampled query
  bool own = false;
};

class PartitionMeasurement {
 public:
  PartitionMeasurement(const PublicParameters& parameters, const CellContents& contents,
                       const PartitionDemand& partition, const QualitySample& sample,
                       const CellQuality& quality)
      : parameters_(parameters),
        codes_(contents.codes),
        gallery_labels_(contents.gallery.labels),
        partition_(partition),
        sample_(sample),
        counts_(quality.items),
        epsilons_(quality.epsilons),
        means_(counts_.size() * epsilons_.size()),
        own_(means_),
        other_(means_),
        column_(gallery_labels_.size(), -1) {}

  // report: of the share of the cells that are done.
  PartitionQuality Measure(absl::FunctionRef<bool()> stopped,
                           absl::FunctionRef<void(double)> report) {
    const std::vector<std::vector<Request>> requests = ChooseRequests();
    for (size_t cell = 0; cell < requests.size() && !stopped(); ++cell) {
      report(static_cast<double>(cell) / static_cast<double>(requests.size()));
      MeasureCell(static_cast<int64_t>(cell), requests[cell], stopped);
    }
    PartitionQuality quality;
    for (size_t mean = 0; mean < means_; ++mean) {
      quality.own.push_back(own_[mean].Rounded());
      quality.other.push_back(other_[mean].Rounded());
    }
    return quality;
  }

 private:
  static constexpr int8_t kFar = -1, kItself = -2;

  // Columns number the rows of all lists of a cell. What is looked up for each item of a list is
  // held by column, so that it fits into a cache for every size of the gallery.
  struct List {
    CellOrder order;
    std::vector<int32_t> columns;
  };

  // An item whose demand without the query is less.
  struct Demoted {
    int32_t column;
    float demand;
  };

  // By cell: each query's own and one of the others.
  std::vector<std::vector<Request>> ChooseRequests() const {
    const int64_t cells = partition_.demand.cells();
    std::vector<std::vector<Request>> requests(static_cast<size_t>(cells));
    // In a regular order other cells could coincide with the order of the items.
    std::mt19937_64 random(kSeed);
    std::uniform_int_distribution<int64_t> offset(1, cells - 1);
    for (size_t query = 0; query < sample_.rows.size(); ++query) {
      const auto row = static_cast<size_t>(sample_.rows[query]);
      const int64_t own = partition_.item_cells.cells[row];
      requests[static_cast<size_t>(own)].push_back({query, true});
      requests[static_cast<size_t>((own + offset(random)) % cells)].push_back({query, false});
    }
    return requests;
  }

  void MeasureCell(int64_t cell, const std::vector<Request>& requests,
                   absl::FunctionRef<bool()> stopped) {
    if (requests.empty()) return;
    std::vector<List> lists;
    rows_.clear();
    const auto items = std::ssize(gallery_labels_);
    // Beside what is scored, the query itself and the items that its vote may have promoted.
    const int64_t length = std::min(items, counts_.back() + 1 + Demand::kRanks);
    for (const double epsilon : epsilons_) {
      if (stopped()) break;
      List& list =
          lists.emplace_back(List{{partition_.demand, partition_.item_cells, cell, epsilon}, {}});
      for (const int64_t row : list.order.First(length)) {
        int32_t& column = column_[static_cast<size_t>(row)];
        if (column < 0) {
          column = static_cast<int32_t>(rows_.size());
          rows_.push_back(row);
        }
        list.columns.push_back(column);
      }
    }
    rank_.assign(rows_.size(), kFar);
    labels_.clear();
    for (const int64_t row : rows_) labels_.push_back(gallery_labels_[static_cast<size_t>(row)]);
    const FloatMatrix decoded = Decode(rows_);
    const absl::Span<const Request> all(requests);
    for (size_t begin = 0; begin < all.size() && !stopped(); begin += kQueriesAtOnce) {
      MeasureRequests(lists, decoded, all.subspan(begin, kQueriesAtOnce));
    }
    for (const int64_t row : rows_) column_[static_cast<size_t>(row)] = -1;
  }

  FloatMatrix Decode(const std::vector<int64_t>& rows) const {
    const auto bytes = static_cast<size_t>(ItemCodeBytes(parameters_));
    std::string codes;
    for (const int64_t row : rows) {
      absl::StrAppend(&codes, codes_.substr(static_cast<size_t>(row) * bytes, bytes));
    }
    return DecodeItemCodes(parameters_, codes).value();  // the server's own codes
  }

  void MeasureRequests(const std::vector<List>& lists, const FloatMatrix& decoded,
                       absl::Span<const Request> requests) {
    std::vector<size_t> queries;
    for (const Request& request : requests) queries.push_back(request.query);
    // Squared distances less the query's own square.
    FloatMatrix distances = -2 * sample_.features(queries, Eigen::all) * decoded.transpose();
    distances.rowwise() += decoded.rowwise().squaredNorm().transpose();
    for (size_t i = 0; i < requests.size(); ++i) {
      for (size_t epsilon = 0; epsilon < lists.size(); ++epsilon) {
        Score(lists[epsilon], distances.row(static_cast<Eigen::Index>(i)).data(), requests[i],
              epsilon * counts_.size());
      }
    }
  }

  // Visits the list as it is without the query.
  void Score(const List& list, const float* distances, const Request& request, size_t first_mean) {
    const int64_t itself = sample_.rows[request.query];
    const std::vector<int64_t>& nearest = sample_.nearest[request.query];
    Mark(itself, nearest);
    const std::vector<float>& weights = WeightsOf(nearest.size());
    const float share = request.own ? 1 : list.order.other();
    demoted_.clear();
    Matches matches;
    int64_t visited = 0;
    size_t count = 0;
    const int32_t label = gallery_labels_[static_cast<size_t>(itself)];
    const auto visit = [&](int32_t column) {
      const auto at = static_cast<size_t>(column);
      matches.Add(distances[column], rank_[at] >= 0 && rank_[at] < kQualityMatches,
                  label != kNoLabel && labels_[at] == label);
      if (++visited != counts_[count]) return;
      matches.AddTo(&(request.own ? own_ : other_)[first_mean + count]);
      ++count;
    };
    for (const int32_t column : list.columns) {
      const int8_t rank = rank_[static_cast<size_t>(column)];
      if (rank == kItself) continue;
      if (rank >= 0) {
        Demote(list.order, column, share * weights[static_cast<size_t>(rank)]);
        continue;
      }
      while (count < counts_.size() && !demoted_.empty() &&
             list.order.IsBefore(RowOf(demoted_.back().column), demoted_.back().demand,
                                 RowOf(column), list.order.demand(RowOf(column)))) {
        visit(demoted_.back().column);
        demoted_.pop_back();
      }
      if (count < counts_.size()) visit(column);
      if (count == counts_.size()) break;
    }
    for (; count < counts_.size(); demoted_.pop_back()) visit(demoted_.back().column);
    Unmark(itself, nearest);
  }

  int64_t RowOf(int32_t column) const { return rows_[static_cast<size_t>(column)]; }

  // Keeps the first of them last.
  void Demote(const CellOrder& order, int32_t column, float vote) {
    constexpr float kRounding = 1e-5F;  // relative; what is left then is no vote
    const int64_t row = RowOf(column);
    const float rest = order.demand(row) - vote;
    const Demoted demoted{column, rest > kRounding * vote ? rest : 0};
    const auto at = std::partition_point(demoted_.begin(), demoted_.end(), [&](const Demoted& one) {
      return order.IsBefore(row, demoted.demand, RowOf(one.column), one.demand);
    });
    demoted_.insert(at, demoted);
  }

  void Mark(int64_t itself, const std::vector<int64_t>& nearest) {
    SetRank(itself, kItself);
    for (size_t rank = 0; rank < nearest.size(); ++rank) {
      SetRank(nearest[rank], static_cast<int8_t>(rank));
    }
  }
  void Unmark(int64_t itself, const std::vector<int64_t>& nearest) {
    SetRank(itself, kFar);
    for (const int64_t row : nearest) SetRank(row, kFar);
  }
  // Rows of no list are never looked up.
  void SetRank(int64_t row, int8_t rank) {
    const int32_t column = column_[static_cast<size_t>(row)];
    if (column >= 0) rank_[static_cast<size_t>(column)] = rank;
  }

  const std::vector<float>& WeightsOf(size_t neighbours) {
    if (weights_.size() != neighbours) weights_ = Demand::Weights(neighbours);
    return weights_;
  }

  const PublicParameters& parameters_;
  const absl::string_view codes_;
  const std::vector<int32_t>& gallery_labels_;
  const PartitionDemand& partition_;
  const QualitySample& sample_;
  const std::vector<int64_t>& counts_;
  const std::vector<double>& epsilons_;
  const size_t means_;
  std::vector<QualityMean> own_;
  std::vector<QualityMean> other_;
  std::vector<int32_t> column_;  // of each row of the gallery; -1: none
  std::vector<int64_t> rows_;    // of the columns
  std::vector<int32_t> labels_;  // of the columns
  std::vector<int8_t> rank_;     // of the columns among the query's nearest; kFar, kItself
  std::vector<Demoted> demoted_;
  std::vector<float> weights_;
};

}  // namespace

int64_t MemoryToMeasure(const PublicParameters& parameters, int64_t items) {
  constexpr int64_t kValue = sizeof(float), kRow = sizeof(int64_t);
  const int64_t epsilons = std::ssize(ListEpsilons());
  const int64_t length = std::min(items, kMaxQualityItems + 1 + Demand::kRanks);  // of a list
  const int64_t listed = std::min(items, epsilons * length);  // rows of a cell's lists
  // Orders, the rows of one while it is sorted, and columns; lists; codes of their rows, twice
  // decoded, distances, rows, labels and ranks; the sample.
  return items * (epsilons * kValue + kRow + kValue) + epsilons * length * kValue +
         listed * (ItemCodeBytes(parameters) +
                   (2 * parameters.feature_dim + kQueriesAtOnce + 1) * kValue + kRow + 1) +
         kMaxQueries * (parameters.feature_dim * kValue + Demand::kRanks * kRow);
}

absl::StatusOr<QualitySample> SampleQueries(const RowSource& items,
                                            const std::vector<Eigen::Index>& queries,
                                            const std::vector<std::vector<int64_t>>& nearest) {
  std::vector<size_t> all(queries.size()), chosen;
  std::iota(all.begin(), all.end(), 0);
  std::sample(all.begin(), all.end(), std::back_inserter(chosen), kMaxQueries,
              std::mt19937_64(kSeed));
  QualitySample sample;
  for (const size_t query : chosen) {
    sample.rows.push_back(queries[query]);
    sample.nearest.push_back(nearest[query]);
  }
  PM_ASSIGN_OR_RETURN(sample.features, ReadRows(items, {sample.rows.begin(), sample.rows.end()}));
  return sample;
}

std::optional<CellQuality> MeasureQuality(const PublicParameters& parameters,
                                          const CellContents& contents, const QualitySample& sample,
                                          absl::FunctionRef<bool()> stopped,
                                          const std::function<void(double)>& report) {
  if (std::ssize(sample.rows) < kMinQualityQueries) return std::nullopt;
  CellQuality quality{.queries = std::ssize(sample.rows),
                      .items = ItemCounts(std::ssize(contents.gallery.labels)),
                      .epsilons = ListEpsilons(),
                      .partitions = {}};
  const auto partitions = static_cast<double>(contents.partitions.size());
  for (const PartitionDemand& partition : contents.partitions) {
    const auto done = static_cast<double>(quality.partitions.size());
    const auto report_part = [&](double share) {
      if (report) report((done + share) / partitions);
    };
    quality.partitions.push_back(
        PartitionMeasurement(parameters, contents, partition, sample, quality)
            .Measure(stopped, report_part));
  }
  if (stopped()) return std::nullopt;
  return quality;
}

}  // namespace privatemail::server
