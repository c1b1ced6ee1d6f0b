// What queries for cells really find, by the server's own lists: what forecasts are held against.
#ifndef PRIVATEMAIL_TESTS_TESTING_FOUND_IN_CELLS_H_
#define PRIVATEMAIL_TESTS_TESTING_FOUND_IN_CELLS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/embedding/public_parameters.h"
#include "server/cells/cell_index.h"

namespace privatemail::server {

struct LabelledFeatures {
  FloatMatrix features;
  std::vector<int32_t> labels;
};

// Of the matches that a target keeps: the first, by their codes, of what comes back.
struct FoundMeans {
  double fidelity = 0;  // share of the k truly nearest items among them
  double recall = 0;    // whether one is of the target's class
};

// Targets and a gallery that answers for cells. Nothing is drawn: means are exact over the law of
// the choice of one cell. Items are ranked by what their codes decode to, as a client does.
class FoundInCells {
 public:
  // Rows are no zeros; the parameters' code is one of features. It keeps references to gallery and
  // targets.
  FoundInCells(const PublicParameters& parameters, const Anchors& anchors,
               const LabelledFeatures& gallery, const LabelledFeatures& targets);

  // Over all targets, who ask for one cell of the partition, for which `answered` items answer, and
  // keep k of them.
  FoundMeans Mean(size_t partition, double epsilon, int64_t answered, int64_t k) const;

 private:
  // Of a target whose cell's list, or another's, has these items.
  FoundMeans Found(size_t target, const std::vector<bool>& has, int64_t k) const;

  const LabelledFeatures& gallery_;
  const LabelledFeatures& targets_;
  std::shared_ptr<const CellIndex> index_;
  std::vector<int64_t> partitions_;             // cells of each
  std::vector<std::vector<int64_t>> cells_;     // of each partition and target the nearest
  std::vector<std::vector<int32_t>> ranks_;     // of each target and item: how many are nearer
  std::vector<std::vector<int32_t>> by_codes_;  // of each target all items, nearest first by codes
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_TESTS_TESTING_FOUND_IN_CELLS_H_
