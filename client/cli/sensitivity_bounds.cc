#include "client/cli/sensitivity_bounds.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/privacy/sensitivity/known_anchors_sensitivity.h"
#include "client/privacy/sensitivity/lipschitz.h"
#include "client/privacy/sensitivity/published_sensitivity.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

using Values = absl::StatusOr<std::vector<BoundValue>>;

// The label graph of a question, and the inputs that refer to both.
struct Iteration {
  LabelGraph graph;
  IterationInputs inputs;

  explicit Iteration(const BoundQuestion& question)
      : graph(question.labels, question.settings.label_graph,
              question.settings.KernelDenominator()),
        inputs{.start = question.start,
               .label_graph = graph,
               .alpha = question.settings.alpha,
               .kernel_denominator = question.settings.KernelDenominator(),
               .slots = question.slots} {}
};

Values InBothNorms(const absl::StatusOr<double>& l2, const absl::StatusOr<double>& l1) {
  PM_RETURN_IF_ERROR(l2.status());
  PM_RETURN_IF_ERROR(l1.status());
  return std::vector<BoundValue>{{"sensitivity", "L2 sensitivity", *l2},
                                 {"l1_sensitivity", "L1 sensitivity", *l1}};
}

Values ReplaceTarget(const BoundQuestion& question) {
  const Iteration it(question);
  return InBothNorms(ReplaceTargetSensitivity(it.inputs, question.changed_rows),
                     ReplaceTargetL1Sensitivity(it.inputs, question.changed_rows));
}

Values KnownAnchors(const BoundQuestion& question) {
  const Iteration it(question);
  return InBothNorms(KnownAnchorsSensitivity(it.inputs, question.anchors, question.changed_rows),
                     KnownAnchorsL1Sensitivity(it.inputs, question.anchors, question.changed_rows));
}

Values Lipschitz(const BoundQuestion& question) {
  const Iteration it(question);
  PM_ASSIGN_OR_RETURN(const ReleaseLipschitz constant, LipschitzOfRelease(it.inputs));
  return std::vector<BoundValue>{{"lipschitz_to_l2", "Lipschitz constant to L2", constant.to_l2},
                                 {"lipschitz_to_l1", "Lipschitz constant to L1", constant.to_l1}};
}

Values PublishedGaussian(const BoundQuestion& question) {
  const Iteration it(question);
  PM_ASSIGN_OR_RETURN(const double bound, PublishedGaussianReleaseSensitivity(question.settings, it.inputs));
  return std::vector<BoundValue>{{"sensitivity", "L2 sensitivity", bound}};
}

Values PublishedLaplace(const BoundQuestion& question) {
  const Iteration it(question);
  PM_ASSIGN_OR_RETURN(const double bound, PublishedLaplaceReleaseSensitivity(question.settings, it.inputs));
  return std::vector<BoundValue>{{"sensitivity", "L2 sensitivity", bound}};
}

constexpr SensitivityBound kAll[] = {
    {.name = "known-anchors",
     .source = "PRIVACY.md section 4, known_anchors_sensitivity.h",
     .proven = true,
     .needs_anchors = true,
     .takes_changed = true,
     .compute = &KnownAnchors},
    {.name = "replace-target",
     .source = "PRIVACY.md section 4",
     .proven = true,
     .needs_anchors = false,
     .takes_changed = true,
     .compute = &ReplaceTarget},
    {.name = "lipschitz",
     .source = "PRIVACY.md section 6, lipschitz.h: of the target's unit features, class given",
     .proven = true,
     .needs_anchors = false,
     .takes_changed = false,
     .compute = &Lipschitz},
    {.name = "published-gaussian",
     .source = "PrivateMail (second version), appendix B: as published",
     .proven = false,
     .needs_anchors = false,
     .takes_changed = false,
     .compute = &PublishedGaussian},
    {.name = "published-laplace",
     .source = "Differentially Private Supervised Manifold Learning, corollary 1.1: as published",
     .proven = false,
     .needs_anchors = false,
     .takes_changed = false,
     .compute = &PublishedLaplace},
};

}  // namespace

absl::StatusOr<SensitivityBound> SensitivityBoundFromName(absl::string_view name) {
  for (const SensitivityBound& bound : kAll) {
    if (name == bound.name) return bound;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--bound must be one of ", SensitivityBoundNames(), ", but is \"", name, "\""));
}

std::string SensitivityBoundNames() {
  return absl::StrJoin(kAll, ", ", [](std::string* out, const SensitivityBound& bound) {
    absl::StrAppend(out, bound.name);
  });
}

}  // namespace privatemail::client::cli
