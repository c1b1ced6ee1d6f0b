// The cells scheme (PRIVACY.md section 5): a searcher asks for cells of the anchors, chosen so that
// they hardly tell which one the target lies in, and ranks what comes back by itself.
#ifndef PRIVATEMAIL_CELL_SCHEME_H_
#define PRIVATEMAIL_CELL_SCHEME_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "privatemail/guarantee.h"
#include "privatemail/ledger.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// How cells are chosen. Public, and to be decided without regard to the target.
struct CellCost {
  int64_t partition = 0;  // which of the collection's partitions
  int64_t ask = 1;        // w: cells asked for
  int64_t focus = 1;      // t: cells nearest to the target, to which the choice is drawn
  double epsilon = std::numeric_limits<double>::quiet_NaN();  // no default
};

// What leaves the machine, and what it promises. Safe to publish as a whole.
struct CellRelease {
  std::vector<int64_t> cells;  // `ask` numbers, ascending
  Guarantee guarantee;         // pure: over any two targets, features and class
};

// The public side of a collection with cells, prepared for any number of releases. Immutable and
// thread-safe.
class CellScheme {
 public:
  // anchors must be those that the parameters were published with. FAILED_PRECONDITION: the
  // collection has no cells. INVALID_ARGUMENT and DATA_LOSS as CheckAnchors; INVALID_ARGUMENT: an
  // anchor is zero or not finite. own_anchors: as OwnUnitAnchors takes them, with its errors.
  static absl::StatusOr<CellScheme> Create(
      PublicParameters parameters, const Anchors& anchors,
      const std::optional<FloatMatrix>& own_anchors = std::nullopt);

  const PublicParameters& parameters() const { return parameters_; }

  // Cells by the distance of their centroids to the features, nearest first. features: as many
  // finite values as the anchors have, not all zero. Private: it stays here. INVALID_ARGUMENT.
  absl::StatusOr<std::vector<int64_t>> NearestCells(const Eigen::RowVectorXf& features,
                                                    int64_t partition, int64_t count) const;

  // One release: the charge, durable before anything is sampled, then the choice (CellMechanism).
  // Nothing is spent when a check fails first. INVALID_ARGUMENT: the features, or a field of the
  // cost. FAILED_PRECONDITION, RESOURCE_EXHAUSTED, UNAVAILABLE and DATA_LOSS as Ledger::Charge;
  // UNAVAILABLE also: no bits.
  absl::StatusOr<CellRelease> Release(const Eigen::RowVectorXf& features, const CellCost& cost,
                                      Ledger& ledger, BitSource& bits) const;

 private:
  CellScheme(PublicParameters parameters, std::vector<Matrix> centroids)
      : parameters_(std::move(parameters)), centroids_(std::move(centroids)) {}

  PublicParameters parameters_;
  std::vector<Matrix> centroids_;  // of each partition, cells x d
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CELL_SCHEME_H_
