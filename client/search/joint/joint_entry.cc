#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "client/schemes/joint/joint_search.h"
#include "client/search/collection_cache.h"
#include "client/search/scheme_table.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"
#include "common/items/payload_filter.h"

namespace privatemail::client {
namespace {

class JointConnection : public SchemeConnection {
 public:
  explicit JointConnection(const SearchContext& context) : context_(context) {}

  absl::StatusOr<std::unique_ptr<SchemeSearch>> Open(const v1::GetCollectionResponse& published,
                                                     const SearchRequest& request) override {
    const OwnRows own{.dummies = request.dummies, .anchors = request.own_anchors};
    const auto fetch = [&] {
      return JointCollection::Create(published, AnchorsOf(published, context_.transport), own,
                                     context_.limits);
    };
    // Before anything is computed with a target: when this is sent must not depend on one.
    PM_RETURN_IF_ERROR(CheckFilter(published.name(), request.filter));
    const bool is_shared = !own.dummies.has_value() && !own.anchors.has_value();
    PM_ASSIGN_OR_RETURN(std::shared_ptr<const JointCollection> collection,
                        is_shared ? collections_.Get(published, fetch) : fetch());
    return JointSearch::Create(std::move(collection), request);
  }

  absl::StatusOr<SearchAnswer> Send(const PublicParameters&, google::protobuf::Message* message,
                                    SearchResult* result, const WarnFunction&) override {
    PM_ASSIGN_OR_RETURN(
        v1::RetrieveResponse response,
        context_.transport.Retrieve(static_cast<const v1::RetrieveRequest&>(*message)));
    result->bytes.down = response.ByteSizeLong();
    const auto memory = static_cast<int64_t>(response.SpaceUsedLong());
    return SearchAnswer{.value = std::move(response), .memory = memory};
  }

  absl::StatusOr<SavedMessage> Reopen(const PublicParameters& parameters, const LastSearch& last,
                                      const SearchTarget& target,
                                      std::optional<int64_t> k) const override {
    const bool guess = target.features.size() > 0;
    if (guess && target.label.has_value()) {
      return InvalidField("label", "does not apply with a target, by which the labels are ranked");
    }
    if (!guess && !target.label.has_value()) {
      return FieldError("label", "given with the scheme joint, or the target to rank the labels",
                        "absent");
    }
    PM_ASSIGN_OR_RETURN(auto message, ParseSaved<v1::RetrieveRequest>(last));
    if (k.has_value()) message.set_k(static_cast<uint32_t>(*k));
    std::vector<ClassPlaces> places;
    if (guess) {
      PM_ASSIGN_OR_RETURN(places, AllotClasses(last.collection, target.features, message.k()));
    } else {
      PM_ASSIGN_OR_RETURN(const int64_t slot, SlotOfPrivateLabel(parameters, *target.label));
      places.push_back({.slot = slot, .places = message.k(), .posterior = 1});
    }
    const auto expected = ExpectedAnswer::Of(message, 1, context_.limits);
    return SavedMessage{.message = std::make_unique<v1::RetrieveRequest>(std::move(message)),
                        .read = [&parameters, places, expected, guess](const SearchAnswer& answer,
                                                                       SearchResult* result) {
                          PM_RETURN_IF_ERROR(ReadJointAnswer(
                              parameters, places, expected,
                              std::any_cast<const v1::RetrieveResponse&>(answer.value), result));
                          result->joint->label_guessed = guess;
                          return absl::OkStatus();
                        }};
  }

 private:
  // INVALID_ARGUMENT: the filter is malformed. FAILED_PRECONDITION: no item has one of its paths.
  absl::Status CheckFilter(const std::string& collection, const std::string& text) const {
    if (text.empty()) return absl::OkStatus();
    PM_ASSIGN_OR_RETURN(const PayloadFilter filter, PayloadFilter::Parse(text));
    PM_ASSIGN_OR_RETURN(
        const v1::GetCollectionResponse described,
        context_.transport.GetCollection(collection, {.filter_paths = filter.paths()}));
    const auto& unknown = described.unknown_paths();
    for (const std::string& path : filter.paths()) {
      if (std::find(unknown.begin(), unknown.end(), path) == unknown.end()) continue;
      return FieldError(absl::StatusCode::kFailedPrecondition, "filter",
                        absl::StrCat(NamesUnknownPath(path), " (nothing was spent)"), "");
    }
    return absl::OkStatus();
  }

  // The classes that a query without a label reads, ranked on this machine before anything is sent.
  absl::StatusOr<std::vector<ClassPlaces>> AllotClasses(const v1::GetCollectionResponse& published,
                                                        const Eigen::RowVectorXf& features,
                                                        int64_t k) const {
    PM_ASSIGN_OR_RETURN(const auto collection,
                        JointCollection::Create(published, AnchorsOf(published, context_.transport),
                                                {}, context_.limits));
    return collection->scheme.AllotClasses(features, k, /*classes=*/0);
  }

  const SearchContext context_;
  CollectionCache<JointCollection> collections_;  // without rows of the caller's own
};

std::unique_ptr<SchemeConnection> ConnectJoint(const SearchContext& context) {
  return std::make_unique<JointConnection>(context);
}

absl::StatusOr<nlohmann::json> ExplainSavedJoint(const LastSearch& last,
                                                 const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(const auto message, ParseSaved<v1::RetrieveRequest>(last));
  return ExplainJoint(message, parameters);
}

}  // namespace

SchemeEntry JointEntry() {
  return {.can_resend = true,
          .check_offered = CheckHasClasses,
          .connect = ConnectJoint,
          .add_json = AddJointJson,
          .explain = ExplainSavedJoint};
}

}  // namespace privatemail::client
