#include "client/schemes/joint/joint_search.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/composition.h"
#include "client/schemes/joint/release_noise.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/query_limits.h"
#include "client/schemes/request_checks.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/alignment.h"
#include "common/embedding/offered_schemes.h"
#include "common/embedding/smlq.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client {
namespace {

using Protects = MechanismTraits::Protects;

struct JointState : SearchState {
  std::vector<ClassPlaces> places;  // whose matches are read, in this order
  bool label_guessed = false;
  double sensitivity = 0;
  double noise_stddev = 0;
};

// proto: accepted by CheckAnswer.
Similarity SimilarityFrom(const v1::Alignment& proto, int64_t dim) {
  return Similarity{proto.scale(), Eigen::Map<const Matrix>(proto.rotation().data(), dim, dim),
                    Eigen::Map<const RowVector>(proto.translation().data(), dim)};
}

std::vector<Match> MatchesOf(const std::vector<ClassPlaces>& places,
                             const v1::RetrieveResponse& response) {
  std::vector<std::vector<const v1::Match*>> taken(places.size());
  std::vector<int> next(places.size());
  std::set<absl::string_view> seen;
  const auto take = [&](size_t i, int64_t count) {  // returns how many are missing
    const auto& matches = response.slots(static_cast<int>(places[i].slot)).matches();
    for (; count > 0 && next[i] < matches.size(); ++next[i]) {
      if (!seen.insert(matches[next[i]].id()).second) continue;
      taken[i].push_back(&matches[next[i]]);
      --count;
    }
    return count;
  };
  int64_t missing = 0;
  for (size_t i = 0; i < places.size(); ++i) missing = take(i, places[i].places + missing);
  for (size_t i = 0; i < places.size(); ++i) missing = take(i, missing);
  std::vector<Match> matches;
  for (const auto& of_class : taken) {
    for (const v1::Match* match : of_class) {
      matches.push_back({match->id(), match->label(), match->squared_distance(), match->payload()});
    }
  }
  return matches;
}

// The delta that one release spends. A pure law spends some only over several iterations.
absl::StatusOr<double> DeltaOf(const PrivacyCost& cost) {
  const double given = cost.delta.value_or(0);
  if (TraitsOf(cost.mechanism).TakesDelta()) return given;
  if (cost.private_iterations == 1) return 0;
  PM_ASSIGN_OR_RETURN(const EpsilonShare share,
                      EpsilonPerRelease(cost.epsilon, given, cost.private_iterations));
  return share.delta;
}

// The coordinates of a request after all post-processing, as the server aligns them.
absl::StatusOr<Matrix> FinishedRows(const JointScheme& scheme, const v1::RetrieveRequest& request) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix sent, FromProto("release", request.release()));
  if (request.post_processing_steps() == 0) return Matrix(sent.cast<double>());
  return PostProcess(sent.cast<double>(), scheme.label_graph(), scheme.parameters().settings);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const JointCollection>> JointCollection::Create(
    const v1::GetCollectionResponse& collection, const FetchAnchors& fetch_anchors,
    const OwnRows& own, const ClientLimits& limits) {
  PM_ASSIGN_OR_RETURN(PublicParameters parameters, ReadBuiltCollection(collection));
  PM_RETURN_IF_ERROR(CheckHasClasses(collection.name(), parameters));
  const int64_t own_columns = own.anchors.has_value() ? own.anchors->cols() : 0;
  PM_RETURN_IF_ERROR(
      CheckQueryMemory(parameters, JointQueryMemory(parameters, own_columns), limits));
  PM_ASSIGN_OR_RETURN(const std::vector<v1::GetAnchorsResponse> anchors, fetch_anchors());
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(parameters, anchors));
  PM_ASSIGN_OR_RETURN(JointScheme scheme,
                      JointScheme::Create(std::move(parameters), joined, own, limits));
  PM_ASSIGN_OR_RETURN(std::optional<Matrix> coordinates,
                      JoinCoordinates(scheme.parameters(), anchors));
  return std::make_shared<const JointCollection>(
      JointCollection{collection, std::move(scheme), std::move(coordinates)});
}

absl::StatusOr<std::optional<ExpectedAlignment>> JointCollection::ExpectAlignment() const {
  if (anchor_coordinates.has_value()) {
    PM_ASSIGN_OR_RETURN(const ExpectedAlignment expected,
                        scheme.ExpectAlignment(*anchor_coordinates));
    return expected;
  }
  if (!scheme.has_own_anchors()) return std::nullopt;
  return FieldError(
      absl::StatusCode::kFailedPrecondition, "own_anchors",
      "does not apply where the server sends no coordinates of its anchors to compare with", "");
}

absl::StatusOr<int64_t> SlotOfPrivateLabel(const PublicParameters& parameters, int32_t label,
                                           absl::string_view of) {
  const absl::StatusOr<int64_t> slot = parameters.SlotOf(label);
  if (slot.ok()) return slot;
  return InvalidField("label", absl::StrCat("must be one of the collection's ",
                                            parameters.slot_labels.size(), " labels", of));
}

int64_t JointCollection::max_k() const {
  if (published.max_k() == 0) return kMaxNeighbors;
  return std::min<int64_t>(published.max_k(), kMaxNeighbors);
}

absl::StatusOr<v1::RetrieveRequest> PackRelease(const JointCollection& collection,
                                                const FloatMatrix& release,
                                                const SearchRequest& request) {
  const JointScheme& scheme = collection.scheme;
  const EmbeddingSettings& settings = scheme.parameters().settings;
  v1::RetrieveRequest message;
  message.set_collection(collection.published.name());
  message.set_embedding_version(collection.published.embedding_version());
  message.set_fingerprint(Fingerprint(scheme.parameters()));
  message.set_k(static_cast<uint32_t>(request.k));
  message.set_with_payloads(request.with_payloads.value_or(true));
  message.set_with_alignment(request.with_alignment.value_or(false));
  // Without what the text says twice, so that Explain shows all that is sent.
  if (!request.filter.empty()) message.set_filter(nlohmann::json::parse(request.filter).dump());
  if (request.post_process == PostProcessing::kServer) {
    message.set_post_processing_steps(static_cast<uint32_t>(settings.steps));
    ToProto(release, message.mutable_release());
    return message;
  }
  // The time begins at the release, so that whether the message is sent depends on the release
  // alone and not on the time that computing with the target took.
  const ComputingDeadline deadline("post-processing of the release", scheme.limits());
  PM_ASSIGN_OR_RETURN(
      const Matrix coordinates,
      PostProcess(release.cast<double>(), scheme.label_graph(), settings, deadline.steps()));
  ToProto(coordinates, message.mutable_release());
  return message;
}

absl::Status ReadJointAnswer(const PublicParameters& parameters,
                             const std::vector<ClassPlaces>& places, const ExpectedAnswer& expected,
                             const v1::RetrieveResponse& response, SearchResult* result) {
  PM_RETURN_IF_ERROR(CheckAnswer(parameters, expected, response));
  std::vector<int64_t> payloads;
  for (const v1::SlotMatches& slot : response.slots()) {
    for (const v1::Match& match : slot.matches()) payloads.push_back(std::ssize(match.payload()));
  }
  PM_RETURN_IF_ERROR(
      CheckPayloadMemory(std::move(payloads), expected.k, expected.targets, expected.max_memory));
  result->matches = MatchesOf(places, response);
  result->times.server_ms = response.server_seconds() * 1e3;
  JointResult& joint = result->joint.emplace();
  for (const ClassPlaces& one : places) {
    joint.classes.push_back({.label = parameters.slot_labels[static_cast<size_t>(one.slot)],
                             .slot = one.slot,
                             .places = one.places,
                             .posterior = one.posterior});
  }
  joint.relative_residual = response.alignment().relative_residual();
  joint.scale = response.alignment().scale();
  joint.truncated = response.truncated();
  joint.embedding_version = response.embedding_version();
  joint.changes_since_embedding = response.changes_since_embedding();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SchemeSearch>> JointSearch::Create(
    std::shared_ptr<const JointCollection> collection, const SearchRequest& request) {
  std::unique_ptr<JointSearch> search(new JointSearch(std::move(collection), request));
  const JointCollection& joint = *search->collection_;
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", request.k, 1, joint.max_k()));
  PM_RETURN_IF_ERROR(CheckTargets(request, joint.scheme.columns(), Metric::kCosine));
  PM_RETURN_IF_ERROR(search->CheckCost());
  PM_RETURN_IF_ERROR(search->CheckLabels());
  PM_RETURN_IF_ERROR(search->RankClasses());
  const absl::Status alignment = search->ExpectAlignment();
  if (!request.accept_misalignment) PM_RETURN_IF_ERROR(alignment);
  search->AddExpectations(alignment);
  return search;
}

absl::Status JointSearch::CheckCost() {
  cost_ = {.epsilon = *request_.epsilon,
           .delta = request_.delta,
           .mechanism = request_.mechanism.value_or(MechanismKind::kGaussian),
           .radius = request_.radius,
           .private_iterations = request_.private_iterations.value_or(1)};
  PM_RETURN_IF_ERROR(collection_->scheme.CheckCost(cost_));
  PM_ASSIGN_OR_RETURN(const double delta, DeltaOf(cost_));
  expectation_.cost = {cost_.epsilon, delta};
  const PublicParameters& parameters = collection_->scheme.parameters();
  expectation_.message_bytes = (std::ssize(parameters.slot_labels) + parameters.anchor_count) *
                                   parameters.settings.embedding_dim *
                                   static_cast<int64_t>(sizeof(float)) +
                               std::ssize(request_.filter);
  if (cost_.radius.has_value()) radius_meaning_ = collection_->scheme.DescribeRadius(*cost_.radius);
  return absl::OkStatus();
}

absl::Status JointSearch::CheckLabels() const {
  const PublicParameters& parameters = collection_->scheme.parameters();
  const MechanismTraits& traits = TraitsOf(cost_.mechanism);
  for (size_t i = 0; i < request_.targets.size(); ++i) {
    const std::optional<int32_t>& label = request_.targets[i].label;
    if (!label.has_value()) {
      // A class that is guessed from the features would reveal part of them.
      if (traits.protects == Protects::kValue) continue;
      return FieldError("label",
                        absl::StrCat("given with ", traits.name, ", which does not hide the label"),
                        "absent");
    }
    PM_RETURN_IF_ERROR(
        SlotOfPrivateLabel(parameters, *label, absl::StrCat(" for ", TargetName(request_, i)))
            .status());
  }
  return absl::OkStatus();
}

absl::Status JointSearch::RankClasses() {
  const JointScheme& scheme = collection_->scheme;
  const auto slots = static_cast<int64_t>(scheme.parameters().slot_labels.size());
  if (request_.classes.has_value()) {
    PM_RETURN_IF_ERROR(CheckIntegerBetween("classes", *request_.classes, 1, slots));
  }
  const int64_t classes = request_.classes.value_or(0);  // 0: as many as are worth it
  bool ranked = false;
  for (const SearchTarget& target : request_.targets) {
    if (target.label.has_value()) {
      if (request_.classes.has_value()) {
        return InvalidField("classes", "does not apply where a label is given");
      }
      const int64_t slot = *scheme.parameters().SlotOf(*target.label);
      places_.push_back({{.slot = slot, .places = request_.k, .posterior = 1}});
      continue;
    }
    ranked = true;
    PM_ASSIGN_OR_RETURN(places_.emplace_back(),
                        scheme.AllotClasses(target.features, request_.k, classes));
  }
  if (!ranked) return absl::OkStatus();
  class_recall_ = scheme.class_ranker().ExpectedRecall(request_.k, classes);
  return absl::OkStatus();
}

absl::Status JointSearch::ExpectAlignment() {
  PM_ASSIGN_OR_RETURN(alignment_, collection_->ExpectAlignment());
  return alignment_.has_value() ? CheckAlignment(*alignment_) : absl::OkStatus();
}

void JointSearch::AddExpectations(const absl::Status& misalignment) {
  if (alignment_.has_value()) {
    expectation_.recall = alignment_->recall * class_recall_.value_or(1);
  }
  const v1::GetCollectionResponse& published = collection_->published;
  std::vector<std::string>& warnings = expectation_.warnings;
  if (!misalignment.ok()) warnings.emplace_back(misalignment.message());
  if (!collection_->anchor_coordinates.has_value()) {
    warnings.push_back(absl::StrCat("alignment was not checked: ", kNoCoordinates));
  }
  if (published.changes_since_embedding() > 0) {
    warnings.push_back(absl::StrCat(
        published.embedded_items(), " items are searchable, ", published.items(),
        " are stored, and ", published.changes_since_embedding(),
        " changes since the last build may be missing, except for deletions: a build includes "
        "them"));
  }
  if (!request_.filter.empty()) {
    warnings.emplace_back(
        "the server reads the filter in clear, and the guarantee does not cover it: a filter that "
        "depends on the target reveals it");
  }
}

absl::StatusOr<PreparedSearch> JointSearch::Prepare(size_t first, size_t /*one*/,
                                                    const ChargeFunction& charge, BitSource& bits) {
  const SearchTarget& target = request_.targets[first];
  const std::vector<ClassPlaces>& places = places_[first];
  const PublicParameters& parameters = collection_->scheme.parameters();
  const int32_t label = parameters.slot_labels[static_cast<size_t>(places.front().slot)];
  const bool guessed = !target.label.has_value();
  PM_ASSIGN_OR_RETURN(
      const JointRelease release,
      collection_->scheme.Release({.features = target.features,
                                   .label = label,
                                   .places = guessed ? places : std::vector<ClassPlaces>()},
                                  cost_, charge, bits));
  absl::StatusOr<v1::RetrieveRequest> message = PackRelease(*collection_, release.rows, request_);
  if (!message.ok()) return ChargedWithoutRelease(message.status());
  auto state = std::make_unique<JointState>();
  state->places = places;
  state->label_guessed = guessed;
  state->sensitivity = release.sensitivity;
  state->noise_stddev = release.noise_stddev;
  return PreparedSearch{.message = std::make_unique<v1::RetrieveRequest>(*std::move(message)),
                        .state = std::move(state)};
}

SearchWork JointSearch::WorkOf(const SearchAnswer& answer) const {
  const auto targets = std::ssize(request_.targets);
  return {.queries = targets, .payload_bytes = targets * answer.memory};
}

absl::Status JointSearch::Finish(PreparedSearch prepared, const SearchAnswer& answer,
                                 absl::Span<SearchResult> results) const {
  const JointScheme& scheme = collection_->scheme;
  const auto& state = static_cast<const JointState&>(*prepared.state);
  const auto& message = static_cast<const v1::RetrieveRequest&>(*prepared.message);
  const auto& response = std::any_cast<const v1::RetrieveResponse&>(answer.value);
  SearchResult& result = results.front();
  PM_RETURN_IF_ERROR(ReadJointAnswer(
      scheme.parameters(), state.places,
      ExpectedAnswer::Of(message, request_.targets.size(), scheme.limits()), response, &result));
  JointResult& joint = *result.joint;
  joint.label_guessed = state.label_guessed;
  if (state.label_guessed) joint.class_recall = class_recall_;
  if (alignment_.has_value()) {
    joint.expected_recall = alignment_->recall;
    joint.expected_residual = alignment_->relative_residual;
  }
  joint.radius_meaning = radius_meaning_;
  joint.sensitivity = state.sensitivity;
  joint.noise_stddev = state.noise_stddev;
  if (!message.with_alignment()) return absl::OkStatus();
  PM_ASSIGN_OR_RETURN(joint.released, FinishedRows(scheme, message));
  PM_ASSIGN_OR_RETURN(const FloatMatrix anchors,
                      FromProto("server_anchors", response.alignment().server_anchors()));
  joint.server_anchors = anchors.cast<double>();
  joint.aligned = SimilarityFrom(response.alignment(), scheme.parameters().settings.embedding_dim)
                      .Apply(joint.released);
  return absl::OkStatus();
}

}  // namespace privatemail::client
