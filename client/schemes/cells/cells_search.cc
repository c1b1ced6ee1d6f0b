#include "client/schemes/cells/cells_search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/planning/published_quality.h"
#include "client/planning/query_plan.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/schemes/memory_budget.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/query_limits.h"
#include "client/schemes/request_checks.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"

namespace privatemail::client {
namespace {

struct CellsState : SearchState {
  CellTarget target;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const CellsCollection>> CellsCollection::Create(
    const v1::GetCollectionResponse& collection, const FetchAnchors& fetch_anchors,
    const ClientLimits& limits) {
  PM_ASSIGN_OR_RETURN(PublicParameters parameters, ReadBuiltCollection(collection));
  PM_RETURN_IF_ERROR(CheckHasCells(collection.name(), parameters));
  PM_RETURN_IF_ERROR(CheckQueryMemory(parameters, CellQueryMemory(parameters), limits));
  PM_ASSIGN_OR_RETURN(const std::vector<v1::GetAnchorsResponse> anchors, fetch_anchors());
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(parameters, anchors));
  PM_ASSIGN_OR_RETURN(CellScheme scheme, CellScheme::Create(std::move(parameters), joined));
  return std::make_shared<const CellsCollection>(CellsCollection{collection, std::move(scheme)});
}

absl::StatusOr<std::unique_ptr<SchemeSearch>> CellsSearch::Create(
    std::shared_ptr<const CellsCollection> collection, const SearchRequest& request,
    const ClientLimits& limits) {
  std::unique_ptr<CellsSearch> search(new CellsSearch(std::move(collection), request, limits));
  const v1::GetCollectionResponse& published = search->collection_->published;
  const PublicParameters& parameters = search->collection_->scheme.parameters();
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", request.k, 1, kMaxNeighbors));
  search->cost_ = {.partition = request.partition.value_or(0),
                   .ask = request.ask.value_or(1),
                   .focus = request.focus.value_or(1),
                   .epsilon = *request.epsilon};
  PM_RETURN_IF_ERROR(search->ChooseItems());
  PM_RETURN_IF_ERROR(CheckCellsReady(published));
  PM_RETURN_IF_ERROR(CheckTargets(request, parameters.feature_dim, Metric::kCosine));
  PM_RETURN_IF_ERROR(CheckMemory(
      static_cast<double>(search->items_) * static_cast<double>(parameters.feature_dim) *
          sizeof(float),
      absl::StrCat("the features of ", search->items_, " received items"), limits.max_memory));
  Expectation& expected = search->expectation_;
  expected.cost = {search->cost_.epsilon, /*delta=*/0};
  constexpr int64_t kCellBytes = 5;  // a varint
  expected.message_bytes = kCellBytes * search->cost_.ask;
  if (published.changes_since_embedding() > 0) {
    expected.warnings.push_back(
        absl::StrCat("answers are from the last build; ", published.changes_since_embedding(),
                     " changes since may be missing, except for deletions: a build includes them"));
  }
  if (static_cast<uint64_t>(search->items_) > published.embedded_items()) {
    expected.warnings.push_back(absl::StrCat(search->items_,
                                             " items are requested, but the gallery has ",
                                             published.embedded_items(), ": no more are returned"));
  }
  return search;
}

absl::Status CellsSearch::ChooseItems() {
  constexpr int64_t kMaxItems = std::numeric_limits<uint32_t>::max();
  const v1::GetCollectionResponse& published = collection_->published;
  const std::vector<CellPartition>& partitions = collection_->scheme.parameters().cell_partitions;
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("partition", cost_.partition, 0, std::ssize(partitions) - 1));
  const int64_t cells = partitions[static_cast<size_t>(cost_.partition)].cells;
  PM_ASSIGN_OR_RETURN(
      const CellMechanism mechanism,
      CellMechanism::Create(
          {.cells = cells, .ask = cost_.ask, .focus = cost_.focus, .epsilon = cost_.epsilon}));
  own_cell_probability_ = mechanism.BestCellProbability();
  if (request_.items.has_value()) {
    items_ = *request_.items;
    return CheckIntegerBetween("items", items_, std::max<int64_t>(cost_.ask, 1), kMaxItems);
  }
  const absl::StatusOr<CellQuality> quality = QualityOf(published);
  if (absl::IsFailedPrecondition(quality.status())) {
    return FieldError(
        "items",
        absl::StrCat("given, the number of items to fetch, since its default is not known: ",
                     quality.status().message()),
        "absent");
  }
  PM_RETURN_IF_ERROR(quality.status());
  items_ = std::min(cost_.ask * DefaultItems(*quality, cost_, cells),
                    static_cast<int64_t>(published.cells_items()));
  return absl::OkStatus();
}

absl::StatusOr<PreparedSearch> CellsSearch::Prepare(size_t first, size_t /*one*/,
                                                    const ChargeFunction& charge, BitSource& bits) {
  const CellScheme& scheme = collection_->scheme;
  const Eigen::RowVectorXf& features = request_.targets[first].features;
  auto state = std::make_unique<CellsState>();
  PM_ASSIGN_OR_RETURN(state->target, CellTarget::From(scheme.parameters(), features, request_.k));
  state->target.targets = request_.targets.size();
  state->target.max_memory = limits_.max_memory;
  PM_ASSIGN_OR_RETURN(const CellRelease release, scheme.Release(features, cost_, charge, bits));
  auto message = std::make_unique<v1::RetrieveCellsRequest>();
  message->set_collection(collection_->published.name());
  message->set_fingerprint(Fingerprint(scheme.parameters()));
  message->set_partition(static_cast<uint32_t>(cost_.partition));
  message->mutable_cells()->Assign(release.cells.begin(), release.cells.end());
  message->set_epsilon(cost_.epsilon);
  message->set_items(static_cast<uint32_t>(items_));
  message->set_with_payloads(request_.with_payloads.value_or(true));
  return PreparedSearch{.message = std::move(message), .state = std::move(state)};
}

SearchWork CellsSearch::WorkOf(const SearchAnswer& answer) const {
  constexpr int64_t kFloatsPerBlock = 1 << 18;  // decoded and compared in the time of a block
  const auto targets = std::ssize(request_.targets);
  const int64_t floats = items_ * collection_->scheme.parameters().feature_dim;
  return {.queries = targets,
          .blocks = 1 + floats / kFloatsPerBlock,
          .payload_bytes = targets * answer.memory};
}

absl::Status CellsSearch::Finish(PreparedSearch prepared, const SearchAnswer& answer,
                                 absl::Span<SearchResult> results) const {
  const auto& state = static_cast<const CellsState&>(*prepared.state);
  const auto& message = static_cast<const v1::RetrieveCellsRequest&>(*prepared.message);
  SearchResult& result = results.front();
  PM_RETURN_IF_ERROR(ReadCellAnswer(collection_->scheme.parameters(), message, state.target,
                                    std::any_cast<const CellsAnswer&>(answer.value), &result));
  result.cells->own_cell_probability = own_cell_probability_;
  return absl::OkStatus();
}

}  // namespace privatemail::client
