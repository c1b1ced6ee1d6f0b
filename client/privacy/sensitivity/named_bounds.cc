#include "client/privacy/sensitivity/named_bounds.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/sensitivity/known_anchors_sensitivity.h"
#include "client/privacy/sensitivity/lipschitz.h"
#include "client/privacy/sensitivity/published_sensitivity.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

// One iteration over a collection's labels.
struct BoundInputs {
  EmbeddingSettings settings;
  int64_t slots = 0;
  std::vector<int32_t> labels;  // by slot, then of the anchors
  Matrix start = {};            // a row for each label
  Matrix anchors = {};          // unit rows; empty where the bound needs none
  int changed_rows = 2;
};

struct SensitivityBound {
  const char* name;
  const char* source;  // the proof, or that there is none
  bool proven;
  bool needs_anchors;  // their features, not their labels alone
  bool takes_changed;  // 1 or 2 changed rows
  absl::StatusOr<std::vector<BoundValue>> (*compute)(const BoundInputs& inputs);
};

using Values = absl::StatusOr<std::vector<BoundValue>>;

// The label graph of a inputs, and the inputs that refer to both.
struct Iteration {
  LabelGraph graph;
  IterationInputs inputs;

  explicit Iteration(const BoundInputs& inputs)
      : graph(inputs.labels, inputs.settings.label_graph, inputs.settings.KernelDenominator()),
        inputs{.start = inputs.start,
               .label_graph = graph,
               .alpha = inputs.settings.alpha,
               .kernel_denominator = inputs.settings.KernelDenominator(),
               .slots = inputs.slots} {}
};

Values InBothNorms(const absl::StatusOr<double>& l2, const absl::StatusOr<double>& l1) {
  PM_RETURN_IF_ERROR(l2.status());
  PM_RETURN_IF_ERROR(l1.status());
  return std::vector<BoundValue>{{"sensitivity", *l2}, {"l1_sensitivity", *l1}};
}

Values ReplaceTarget(const BoundInputs& inputs) {
  const Iteration it(inputs);
  return InBothNorms(ReplaceTargetSensitivity(it.inputs, inputs.changed_rows),
                     ReplaceTargetL1Sensitivity(it.inputs, inputs.changed_rows));
}

Values KnownAnchors(const BoundInputs& inputs) {
  const Iteration it(inputs);
  return InBothNorms(KnownAnchorsSensitivity(it.inputs, inputs.anchors, inputs.changed_rows),
                     KnownAnchorsL1Sensitivity(it.inputs, inputs.anchors, inputs.changed_rows));
}

Values Lipschitz(const BoundInputs& inputs) {
  const Iteration it(inputs);
  PM_ASSIGN_OR_RETURN(const ReleaseLipschitz constant, LipschitzOfRelease(it.inputs));
  return std::vector<BoundValue>{{"lipschitz_to_l2", constant.to_l2},
                                 {"lipschitz_to_l1", constant.to_l1}};
}

Values PublishedGaussian(const BoundInputs& inputs) {
  const Iteration it(inputs);
  PM_ASSIGN_OR_RETURN(const double bound,
                      PublishedGaussianReleaseSensitivity(inputs.settings, it.inputs));
  return std::vector<BoundValue>{{"sensitivity", bound}};
}

Values PublishedLaplace(const BoundInputs& inputs) {
  const Iteration it(inputs);
  PM_ASSIGN_OR_RETURN(const double bound,
                      PublishedLaplaceReleaseSensitivity(inputs.settings, it.inputs));
  return std::vector<BoundValue>{{"sensitivity", bound}};
}

constexpr SensitivityBound kBounds[] = {
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

absl::StatusOr<SensitivityBound> SensitivityBoundFromName(absl::string_view name) {
  for (const SensitivityBound& bound : kBounds) {
    if (name == bound.name) return bound;
  }
  return InvalidField(
      "bound", absl::StrCat("must be one of ", SensitivityBoundNames(), ", but is \"", name, "\""));
}

// For repeatable bounds only. Releases draw their start from the exact sampler.
Matrix SeededStart(Eigen::Index n, const BoundRequest& request) {
  std::mt19937_64 generator(*request.seed);
  std::normal_distribution<double> normal(0, request.settings.start_stddev);
  return Matrix::NullaryExpr(n, request.settings.embedding_dim, [&] { return normal(generator); });
}

absl::StatusOr<Matrix> Start(const std::vector<int32_t>& labels, const BoundRequest& request) {
  const auto n = static_cast<Eigen::Index>(labels.size());
  if (request.settings.start == StartKind::kClasses) {
    const LabelGraph graph(labels, request.settings.label_graph,
                           request.settings.KernelDenominator());
    return request.settings.start_stddev * graph.CodeOfRows(request.settings.embedding_dim);
  }
  if (request.seed.has_value()) return SeededStart(n, request);
  SecureBits bits;
  return NormalStart(n, request.settings.embedding_dim, request.settings.start_stddev, bits);
}

absl::Status CheckFields(const BoundRequest& request, const SensitivityBound& bound) {
  const auto refuse = [&](absl::string_view field) {
    return InvalidField(field, absl::StrCat("is not accepted by bound ", bound.name));
  };
  if (bound.needs_anchors && !request.anchors.has_value()) {
    return InvalidField(
        "anchors", absl::StrCat("must be given with bound ", bound.name, ": the anchors' vectors"));
  }
  if (!bound.needs_anchors && request.anchors.has_value()) return refuse("anchors");
  if (!bound.takes_changed && request.changed.has_value()) return refuse("changed");
  if (!bound.proven && request.settings.kernel != KernelConvention::kTwoSigmaSquared) {
    return InvalidField("kernel", absl::StrCat("must be two_sigma_squared with bound ", bound.name,
                                               ": the paper prints its bound for no other"));
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundInputs> ToInputs(const BoundRequest& request) {
  const std::vector<int32_t>& anchors = request.anchor_labels;
  BoundInputs inputs{
      .settings = request.settings, .labels = anchors, .changed_rows = request.changed.value_or(2)};
  std::vector<int32_t>& labels = inputs.labels;
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  inputs.slots = std::ssize(labels);
  labels.insert(labels.end(), anchors.begin(), anchors.end());
  PM_ASSIGN_OR_RETURN(inputs.start, Start(labels, request));
  if (!request.anchors.has_value()) return inputs;
  if (request.anchors->rows() != std::ssize(anchors)) {
    return InvalidField("anchors", absl::StrCat("must have a row for each of the ", anchors.size(),
                                                " labels, but has ", request.anchors->rows()));
  }
  PM_ASSIGN_OR_RETURN(inputs.anchors, UnitRows("anchors", *request.anchors));
  return inputs;
}

}  // namespace

std::string SensitivityBoundNames() {
  return absl::StrJoin(kBounds, ", ", [](std::string* out, const SensitivityBound& bound) {
    absl::StrAppend(out, bound.name);
  });
}

absl::StatusOr<NamedBound> ComputeBound(const BoundRequest& request) {
  PM_RETURN_IF_ERROR(Validate(request.settings));
  PM_ASSIGN_OR_RETURN(const SensitivityBound bound, SensitivityBoundFromName(request.bound));
  PM_RETURN_IF_ERROR(CheckFields(request, bound));
  PM_ASSIGN_OR_RETURN(const BoundInputs inputs, ToInputs(request));
  NamedBound computed{
      .source = bound.source, .proven = bound.proven, .rows = std::ssize(inputs.labels)};
  PM_ASSIGN_OR_RETURN(computed.values, bound.compute(inputs));
  return computed;
}

}  // namespace privatemail::client
