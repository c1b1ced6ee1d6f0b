// The SDK of the cells scheme: a request and a secret state out of a query, a result out of what
// comes back (cell_answer.h). No network inside.
#ifndef PRIVATEMAIL_CLIENT_CELL_CLIENT_H_
#define PRIVATEMAIL_CLIENT_CELL_CLIENT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cell_answer.h"
#include "client/privacy/bit_source.h"
#include "client/privacy/ledger.h"
#include "client/release/cell_scheme.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

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
  // cells.
  static absl::StatusOr<CellClient> Create(const v1::GetCollectionResponse& collection,
                                           const std::vector<v1::GetAnchorsResponse>& anchors);

  const CellScheme& scheme() const { return scheme_; }
  const PublicParameters& parameters() const { return scheme_.parameters(); }

  // Charges the ledger, chooses cells, and packs what the server shall see. Errors: those of
  // CellScheme::Release; INVALID_ARGUMENT for k or items. Nothing is charged when a check fails
  // first.
  absl::StatusOr<PreparedCellQuery> Prepare(const Eigen::RowVectorXf& features,
                                            const CellQueryOptions& options, Ledger& ledger,
                                            BitSource& bits) const;

  // The k nearest of what came back. Errors: those of ReadCellAnswer.
  absl::StatusOr<CellQueryResult> Finish(
      const PreparedCellQuery& query, const std::vector<v1::RetrieveCellsResponse>& response) const;

 private:
  CellClient(std::string name, CellScheme scheme)
      : name_(std::move(name)), scheme_(std::move(scheme)) {}

  std::string name_;
  CellScheme scheme_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_CELL_CLIENT_H_
