#include "client/queries/joint_queries.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/composition.h"
#include "client/queries/last_release.h"
#include "client/queries/memory_limit.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// If the mechanism does not hide the class, a class guessed from the features would leak them.
absl::Status CheckLabelsAreGiven(const PrivacyCost& cost, const std::vector<NamedTarget>& targets) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  const bool guessed = std::any_of(targets.begin(), targets.end(),
                                   [](const NamedTarget& target) { return target.guessed; });
  if (traits.protects == MechanismTraits::Protects::kValue || !guessed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "label must be given with ", traits.name,
      ", which does not hide the class: a class guessed from the features would reveal them"));
}

// Before the first charge: a batch must not end at a later target.
absl::Status CheckTargets(const PublicParameters& parameters,
                          const std::vector<NamedTarget>& targets) {
  for (const NamedTarget& target : targets) {
    if (parameters.SlotOf(target.target.label).ok()) continue;
    // Without the label, which is private.
    return absl::InvalidArgumentError(
        absl::StrCat("label must be one of the collection's ", parameters.slot_labels.size(),
                     " classes, but that of ", target.name, " is not"));
  }
  return absl::OkStatus();
}

// The delta that one query spends. A pure law spends some only over several iterations.
absl::StatusOr<double> DeltaOf(const PrivacyCost& cost) {
  const double given = std::isnan(cost.delta) ? 0 : cost.delta;
  if (TraitsOf(cost.mechanism).TakesDelta()) return given;
  if (cost.private_iterations == 1) return 0;
  PM_ASSIGN_OR_RETURN(const EpsilonShare share,
                      EpsilonPerRelease(cost.epsilon, given, cost.private_iterations));
  return share.delta;
}

}  // namespace

absl::StatusOr<JointQueries> JointQueries::Create(const Transport& transport,
                                                  QuerySettings settings,
                                                  const std::string& collection,
                                                  const std::optional<Anchors>& dummies) {
  const ClientLimits& limits = settings.limits;
  PM_ASSIGN_OR_RETURN(v1::GetCollectionResponse proto, transport.GetCollection(collection));
  PM_ASSIGN_OR_RETURN(const std::vector<v1::GetAnchorsResponse> anchors,
                      FetchAnchors(transport, proto, Scheme::kJoint, limits));
  PM_ASSIGN_OR_RETURN(JointClient client, JointClient::Create(proto, anchors, dummies, limits));
  return JointQueries(transport, std::move(settings), std::move(proto), std::move(client));
}

absl::Status JointQueries::AllotClasses(int64_t k, int64_t classes,
                                        std::vector<NamedTarget>* targets) const {
  for (NamedTarget& target : *targets) {
    if (!target.guessed) continue;
    PM_ASSIGN_OR_RETURN(target.target.places,
                        client_.AllotClasses(target.target.features, k, classes));
    const auto best = static_cast<size_t>(target.target.places.front().slot);
    target.target.label = client_.parameters().slot_labels[best];
  }
  return absl::OkStatus();
}

absl::Status JointQueries::CheckAlignment() const {
  PM_RETURN_IF_ERROR(alignment_.status());
  return alignment_->has_value() ? client::CheckAlignment(**alignment_) : absl::OkStatus();
}

std::vector<std::string> JointQueries::Warnings(const QueryOptions& options) const {
  std::vector<std::string> warnings;
  if (const absl::Status aligned = CheckAlignment(); !aligned.ok()) {
    warnings.emplace_back(aligned.message());
  }
  if (alignment_.ok() && !alignment_->has_value()) {
    warnings.push_back(absl::StrCat("alignment was not checked: ", kNoCoordinates));
  }
  if (collection_.changes_since_embedding() > 0) {
    warnings.push_back(absl::StrCat(
        collection_.embedded_items(), " items are searchable, ", collection_.items(),
        " are stored, and ", Counted(collection_.changes_since_embedding(), "change"),
        " since the last build may be missing, except for deletions: `privatemail build ",
        collection_.name(), "` (write access) includes them"));
  }
  if (options.filter) {
    warnings.emplace_back(
        "the server reads --filter in clear, and the guarantee does not cover it: a filter that "
        "depends on the target reveals it");
  }
  return warnings;
}

absl::Status JointQueries::Release(Ledger& ledger, const QueryOptions& options,
                                   JointOutcome* outcome) const {
  const PublicParameters& parameters = client_.parameters();
  const Target& target = outcome->target.target;
  PM_ASSIGN_OR_RETURN(const int64_t slot, parameters.SlotOf(target.label));
  outcome->class_name = parameters.ClassName(slot);
  const auto prepare = [&](BitSource& bits) {
    return client_.Prepare(target, options, ledger, bits);
  };
  return ChargeAndPrepare(parameters.collection_uuid, ledger, prepare, outcome);
}

// Saves the request first, so that `explain` shows it even if no answer comes.
absl::Status JointQueries::Send(JointOutcome* outcome) const {
  const v1::RetrieveRequest& request = outcome->prepared.request;
  PM_RETURN_IF_ERROR(
      SaveLastRelease(settings_.state_folder,
                      {.scheme = Scheme::kJoint, .collection = collection_, .request = request}));
  outcome->saved = true;
  const auto start = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(outcome->response, transport_->Retrieve(request));
  outcome->round_trip_ms = MillisecondsSince(start);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<JointOutcome>> JointQueries::Run(const std::vector<NamedTarget>& targets,
                                                            const QueryOptions& options,
                                                            int64_t classes,
                                                            const WarnFunction& warn) const {
  const PrivacyCost& cost = options.cost;
  PM_RETURN_IF_ERROR(CheckLabelsAreGiven(cost, targets));
  PM_RETURN_IF_ERROR(CheckTargets(client_.parameters(), targets));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(settings_.state_folder));
  PM_RETURN_IF_ERROR(CheckLastReleaseCanBeSaved(settings_.state_folder));
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger->Show(client_.parameters().collection_uuid));
  PM_ASSIGN_OR_RETURN(const double delta, DeltaOf(cost));
  PM_RETURN_IF_ERROR(
      CheckAffordable(collection_.name(), entry, targets.size(), {cost.epsilon, delta}));
  for (const std::string& warning : Warnings(options)) warn(warning);

  MemoryLimit answers(kBatchMemory, settings_.limits.max_memory);
  std::vector<JointOutcome> outcomes = SendAll<JointOutcome>(
      targets, *ledger, [&](JointOutcome* outcome) { return Release(*ledger, options, outcome); },
      [&](JointOutcome* outcome) {
        PM_RETURN_IF_ERROR(Send(outcome));
        return answers.Reserve(static_cast<int64_t>(outcome->response.SpaceUsedLong()));
      });
  double class_recall = std::nan("");
  if (!targets.empty() && targets.front().guessed) {
    class_recall = client_.class_ranker().ExpectedRecall(options.k, classes);
  }
  std::optional<RadiusStats> meaning;
  if (!std::isnan(cost.radius)) meaning = client_.DescribeRadius(cost.radius);
  for (JointOutcome& outcome : outcomes) {
    ReadResult(&outcome, [&] { return client_.Finish(outcome.prepared.state, outcome.response); });
    outcome.status.Update(ReservePayloads(outcome.result.matches, &answers));
    outcome.radius_meaning = meaning;
    if (alignment_.ok()) outcome.alignment = *alignment_;
    if (outcome.target.guessed) outcome.class_recall = class_recall;
  }
  return outcomes;
}

}  // namespace privatemail::client
