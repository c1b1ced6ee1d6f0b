// The SDK of the cells scheme: a request and a secret state out of a query, a result out of what
// comes back (cell_answer.h). No network inside.
#ifndef PRIVATEMAIL_CELL_CLIENT_H_
#define PRIVATEMAIL_CELL_CLIENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/cell_answer.h"
#include "privatemail/cell_targets.h"
#include "privatemail/bit_source.h"
#include "privatemail/ledger.h"
#include "privatemail/cell_scheme.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// All public, and to be chosen without regard to the target.
struct CellQueryOptions {
  CellCost cost;      // no default: epsilon must be set
  int64_t items = 0;  // that shall come back, at least one for each cell asked for
  int64_t k = 8;      // matches wanted out of them; told to nobody
  bool with_payloads = false;
};

// What the client keeps while the request travels. Private: it holds the target.
struct CellQueryState {
  CellTarget target;
  Guarantee guarantee;
};

struct PreparedCellQuery {
  v1::RetrieveCellsRequest request;  // all that leaves the machine; sending it again costs nothing
  CellQueryState state;
};

// One collection with cells, ready for private queries. Lives on the client; immutable and
// thread-safe. Sees targets only while Prepare and Finish run.
class CellClient {
 public:
  // From what GetCollection and GetAnchors returned. INVALID_ARGUMENT or DATA_LOSS: the answers are
  // malformed or do not belong together. FAILED_PRECONDITION: the collection is not built or has no
  // cells. Where its code is none, also the errors of CellTargetFactory. own_anchors: where the code is
  // none, features of the same anchors in the same order by a model of the client's own, in which
  // targets are given then; the server need not have it. A cell is a set of anchors, so that both
  // sides mean the same by it.
  static absl::StatusOr<CellClient> Create(
      const v1::GetCollectionResponse& collection,
      const std::vector<v1::GetAnchorsResponse>& anchors,
      const std::optional<FloatMatrix>& own_anchors = std::nullopt);

  const CellScheme& scheme() const { return scheme_; }
  const PublicParameters& parameters() const { return scheme_.parameters(); }
  const CellTargetFactory& targets() const { return targets_; }

  // Charges the ledger, chooses cells, and packs what the server shall see. Errors: those of
  // CellScheme::Release and CellTargetFactory::Of; INVALID_ARGUMENT for k or items. Nothing is charged
  // when a check fails first. label: the target's class, as CellTargetFactory::Of takes it; it has no
  // part in the choice.
  absl::StatusOr<PreparedCellQuery> Prepare(const Eigen::RowVectorXf& features,
                                            const CellQueryOptions& options, Ledger& ledger,
                                            BitSource& bits,
                                            std::optional<int32_t> label = std::nullopt) const;

  // The k nearest of what came back. Errors: those of ReadCellAnswer. Of these ABORTED says that
  // the collection was built since GetAnchors: a client made of what that returns now makes the
  // same target (targets) and finishes another answer to the same request, at no cost.
  absl::StatusOr<CellQueryResult> Finish(
      const PreparedCellQuery& query, const std::vector<v1::RetrieveCellsResponse>& response) const;

 private:
  CellClient(std::string name, CellScheme scheme, CellTargetFactory targets)
      : name_(std::move(name)), scheme_(std::move(scheme)), targets_(std::move(targets)) {}

  std::string name_;
  CellScheme scheme_;
  CellTargetFactory targets_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CELL_CLIENT_H_
