// The exact mean retrieval of cells queries, against which plans are compared.
#ifndef PRIVATEMAIL_TESTS_TESTING_RETRIEVAL_ORACLE_H_
#define PRIVATEMAIL_TESTS_TESTING_RETRIEVAL_ORACLE_H_

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

// Means over targets, of the k returned items that are nearest by their codes.
struct MeanRetrieval {
  double fidelity = 0;  // share of the k nearest items of the gallery
  double recall = 0;    // share of targets with a match of their class
};

// Computes means exactly over the distribution of the chosen cell; draws nothing. Takes the lists
// from the server's CellIndex and ranks decoded items as a client does.
class RetrievalOracle {
 public:
  // Requires nonzero rows and a code of features. Keeps references to all but the
  // anchors.
  RetrievalOracle(const PublicParameters& parameters, const Anchors& anchors,
                  const LabelledFeatures& gallery, const LabelledFeatures& targets);

  // As the server measures it; needs kMinQualityQueries items.
  CellQuality MeasureQuality() const;

  // For queries of one cell of the partition that return `answered` items.
  MeanRetrieval Mean(size_t partition, double epsilon, int64_t answered, int64_t k) const;

 private:
  // For one target, if the items with has[i] are returned.
  MeanRetrieval Found(size_t target, const std::vector<bool>& has, int64_t k) const;

  const PublicParameters& parameters_;
  const LabelledFeatures& gallery_;
  const LabelledFeatures& targets_;
  QualitySample sample_;
  std::shared_ptr<const CellIndex> index_;
  std::vector<int64_t> partitions_;             // number of cells
  std::vector<std::vector<int64_t>> cells_;     // nearest cell by partition and target
  std::vector<std::vector<int32_t>> ranks_;     // by target and item: number of nearer items
  std::vector<std::vector<int32_t>> by_codes_;  // by target: items in the order of their codes
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_TESTS_TESTING_RETRIEVAL_ORACLE_H_
