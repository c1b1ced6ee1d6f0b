// Client of the cells scheme: prepares requests for cells and ranks the items that return.
#ifndef PRIVATEMAIL_CELL_CLIENT_H_
#define PRIVATEMAIL_CELL_CLIENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/bit_source.h"
#include "privatemail/cell_answer.h"
#include "privatemail/cell_scheme.h"
#include "privatemail/client_limits.h"
#include "privatemail/ledger.h"
#include "privatemail/out_of_sample_embedder.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// Makes a CellTarget of features: the unit row or, with code none, coordinates in the server's
// embedding (OutOfSampleEmbedder). Held by the client; sees targets only while Make runs.
// Immutable, thread-safe.
class CellTargetFactory {
 public:
  // anchors: the response of GetAnchors; used with code none only. own_anchors: see CellClient.
  // Errors of JoinAnchors, CheckAnchors, JoinCoordinates and OutOfSampleEmbedder::Create.
  // INVALID_ARGUMENT: own_anchors are given with another code, are not one row an anchor, or have a
  // zero or non-finite row.
  // RESOURCE_EXHAUSTED: a query would take more than limits.max_memory.
  static absl::StatusOr<CellTargetFactory> Create(
      const PublicParameters& parameters, const std::vector<v1::GetAnchorsResponse>& anchors,
      const std::optional<FloatMatrix>& own_anchors = std::nullopt,
      const ClientLimits& limits = {});

  // features: finite, not all zero.
  // label: with code none the target's class, not sent; by default the class with the nearest mean
  //   anchor direction. A wrong label finds wrong items.
  // INVALID_ARGUMENT: features, a label that is none of the collection's, or one with another code.
  absl::StatusOr<CellTarget> Make(const Eigen::RowVectorXf& features, int64_t k,
                                  std::optional<int32_t> label = std::nullopt) const;

  // Of the anchors with the server's coordinates; nullopt unless the code is none.
  std::optional<ExpectedAlignment> expected_alignment() const;
  // FAILED_PRECONDITION: CheckAlignment or, with own anchors, CheckPairing refuses. Check it before
  // you pay.
  absl::Status CheckAnchorsMatch() const;

 private:
  struct Embedding {
    OutOfSampleEmbedder embedder;
    uint64_t version = 0;
    bool own_anchors = false;
  };

  CellTargetFactory(int64_t feature_dim, std::optional<Embedding> embedding)
      : feature_dim_(feature_dim), embedding_(std::move(embedding)) {}

  int64_t feature_dim_;
  std::optional<Embedding> embedding_;  // if and only if the code is none
};

// Public options of a query; choose them independently of the target.
struct CellQueryOptions {
  CellCost cost;      // no default: epsilon must be set
  int64_t items = 0;  // to receive, at least one per requested cell
  int64_t k = 8;      // matches out of them; not sent
  bool with_payloads = false;
};

// Secret state between Prepare and Finish: it holds the target.
struct CellQueryState {
  CellTarget target;
  Guarantee guarantee;
};

struct PreparedCellQuery {
  v1::RetrieveCellsRequest request;  // all that leaves the machine; sending it again costs nothing
  CellQueryState state;
};

// Client of one collection with cells. Held by the client; sees targets only while Prepare and
// Finish run. Immutable, thread-safe, no network. Protocol: Prepare charges and makes the request,
// Transport::RetrieveCells sends it, Finish ranks the answer locally.
class CellClient {
 public:
  // collection, anchors: responses of GetCollection and GetAnchors.
  // own_anchors: with code none, features of the same anchors in the same order by the client's own
  //   model, which the server does not need. Targets are then features by that model.
  // INVALID_ARGUMENT, DATA_LOSS: malformed, or not of one collection.
  // FAILED_PRECONDITION: the collection is not built or has no cells.
  // Otherwise as CellTargetFactory::Create.
  static absl::StatusOr<CellClient> Create(
      const v1::GetCollectionResponse& collection,
      const std::vector<v1::GetAnchorsResponse>& anchors,
      const std::optional<FloatMatrix>& own_anchors = std::nullopt,
      const ClientLimits& limits = {});

  const CellScheme& scheme() const { return scheme_; }
  const PublicParameters& parameters() const { return scheme_.parameters(); }
  const CellTargetFactory& targets() const { return targets_; }

  // Charges the ledger, chooses cells and packs the request; nothing is charged if a check fails
  // first. label: see CellTargetFactory::Make; it does not influence the choice of cells.
  // INVALID_ARGUMENT: k or items. Otherwise as CellScheme::Release and CellTargetFactory::Make.
  absl::StatusOr<PreparedCellQuery> Prepare(const Eigen::RowVectorXf& features,
                                            const CellQueryOptions& options, Ledger& ledger,
                                            BitSource& bits,
                                            std::optional<int32_t> label = std::nullopt) const;

  // Errors of ReadCellAnswer. Remedy for ABORTED, at no cost: with a client of the current anchors
  // make the target again (targets) and rank a new answer to the same request.
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
