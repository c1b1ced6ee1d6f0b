#include <nlohmann/json.hpp>
#include <utility>

#include "client/schemes/cells/cells_search.h"
#include "client/search/collection_cache.h"
#include "client/search/scheme_table.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"

namespace privatemail::client {
namespace {

class CellsConnection : public SchemeConnection {
 public:
  explicit CellsConnection(const SearchContext& context) : context_(context) {}

  absl::StatusOr<std::unique_ptr<SchemeSearch>> Open(const v1::GetCollectionResponse& published,
                                                     const SearchRequest& request) override {
    const auto fetch = [&] {
      return CellsCollection::Create(published, AnchorsOf(published, context_.transport),
                                     context_.limits);
    };
    PM_ASSIGN_OR_RETURN(std::shared_ptr<const CellsCollection> collection,
                        collections_.Get(published, fetch));
    return CellsSearch::Create(std::move(collection), request, context_.limits);
  }

  absl::StatusOr<SearchAnswer> Send(const PublicParameters& parameters,
                                    google::protobuf::Message* message, SearchResult* result,
                                    const WarnFunction&) override {
    const auto& cells = static_cast<const v1::RetrieveCellsRequest&>(*message);
    // Reading stops at the first item beyond what the message allows.
    PM_ASSIGN_OR_RETURN(CellsAnswer response, context_.transport.RetrieveCells(cells, [&] {
      return [limit = CellAnswerLimit(parameters, cells)](
                 const v1::RetrieveCellsResponse& one) mutable { return limit.Add(one); };
    }));
    SearchAnswer answer;
    for (const v1::RetrieveCellsResponse& one : response) {
      result->bytes.down += one.ByteSizeLong();
      answer.memory += static_cast<int64_t>(one.SpaceUsedLong());
    }
    answer.value = std::move(response);
    return answer;
  }

  absl::StatusOr<SavedMessage> Reopen(const PublicParameters& parameters, const LastSearch& last,
                                      const SearchTarget& target,
                                      std::optional<int64_t> k) const override {
    if (!parameters.cell_code.has_value()) {
      return absl::DataLossError("the saved release is of a collection without cells");
    }
    if (target.features.size() == 0) {
      return FieldError("target", "given again, because no file names it", "absent");
    }
    if (target.label.has_value()) {
      return InvalidField("label", "does not apply to the scheme cells");
    }
    PM_ASSIGN_OR_RETURN(CellTarget point, CellTarget::From(parameters, target.features,
                                                           k.value_or(SearchRequest().k)));
    point.max_memory = context_.limits.max_memory;
    PM_ASSIGN_OR_RETURN(const auto message, ParseSaved<v1::RetrieveCellsRequest>(last));
    return SavedMessage{
        .message = std::make_unique<v1::RetrieveCellsRequest>(message),
        .read = [&parameters, message, point](const SearchAnswer& answer, SearchResult* result) {
          return ReadCellAnswer(parameters, message, point,
                                std::any_cast<const CellsAnswer&>(answer.value), result);
        }};
  }

 private:
  const SearchContext context_;
  CollectionCache<CellsCollection> collections_;
};

std::unique_ptr<SchemeConnection> ConnectCells(const SearchContext& context) {
  return std::make_unique<CellsConnection>(context);
}

absl::StatusOr<nlohmann::json> ExplainSavedCells(const LastSearch& last,
                                                 const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(const auto message, ParseSaved<v1::RetrieveCellsRequest>(last));
  return ExplainCells(message, parameters);
}

}  // namespace

SchemeEntry CellsEntry() {
  return {.can_resend = true,
          .check_offered = CheckHasCells,
          .connect = ConnectCells,
          .add_json = AddCellsJson,
          .explain = ExplainSavedCells};
}

}  // namespace privatemail::client
