// The cells scheme (PRIVACY.md section 5): the client requests a random set of cells that is
// slightly biased towards the target's, and ranks the returned items locally.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELL_SCHEME_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELL_SCHEME_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/planning/cell_cost.h"
#include "client/privacy/sampling/bit_source.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/guarantee.h"
#include "privatemail/ledger.h"

namespace privatemail::client {

// The output of a release: safe to publish as a whole.
struct CellRelease {
  std::vector<int64_t> cells;  // `ask` numbers, ascending
  Guarantee guarantee;         // pure: over any two targets, features and class
};

// The public side of a collection with cells, prepared for any number of releases. Immutable,
// thread-safe. Held by the client; sees a target only while NearestCells or Release runs.
class CellScheme {
 public:
  // anchors: published with the parameters.
  // FAILED_PRECONDITION: the collection has no cells.
  // INVALID_ARGUMENT: an anchor is zero or not finite.
  // DATA_LOSS: the anchors do not have the published shape or digest.
  static absl::StatusOr<CellScheme> Create(PublicParameters parameters, const Anchors& anchors);

  const PublicParameters& parameters() const { return parameters_; }

  // The `count` cells whose centroids are nearest to the scaled features, nearest first. Private.
  // INVALID_ARGUMENT: features of another dimension, zero or not finite; partition or count.
  absl::StatusOr<std::vector<int64_t>> NearestCells(const Eigen::RowVectorXf& features,
                                                    int64_t partition, int64_t count) const;

  // One release: the charge, durable before anything is sampled, then the choice (CellMechanism).
  // Nothing is charged if a check fails first.
  // INVALID_ARGUMENT: the features or a field of the cost.
  // FAILED_PRECONDITION, RESOURCE_EXHAUSTED, DATA_LOSS: see Ledger::Charge.
  // UNAVAILABLE: no durable charge, or no random bits.
  absl::StatusOr<CellRelease> Release(const Eigen::RowVectorXf& features, const CellCost& cost,
                                      const ChargeFunction& charge, BitSource& bits) const;

 private:
  CellScheme(PublicParameters parameters, std::vector<Matrix> centroids)
      : parameters_(std::move(parameters)), centroids_(std::move(centroids)) {}

  PublicParameters parameters_;
  std::vector<Matrix> centroids_;  // of each partition, cells x d
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELL_SCHEME_H_
