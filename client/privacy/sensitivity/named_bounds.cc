#include "client/privacy/sensitivity/named_bounds.h"

#include <random>
#include <set>

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
  const EmbeddingSettings& settings;
  const IterationInputs& iteration;
  const Matrix& anchors;  // unit rows; empty where the bound needs none
  int changed_rows;
};

using Values = absl::StatusOr<std::vector<BoundValue>>;

struct SensitivityBound {
  const char* name;
  const char* source;  // the proof, or that there is none
  bool proven;
  bool needs_anchors;  // their features, not their labels alone
  bool takes_changed;  // 1 or 2 changed rows
  Values (*compute)(const BoundInputs& inputs);
};

Values ReplaceTarget(const BoundInputs& in) {
  PM_ASSIGN_OR_RETURN(const double l2,
                      ReplaceTargetSensitivity(in.iteration, in.changed_rows, Norm::kL2));
  PM_ASSIGN_OR_RETURN(const double l1,
                      ReplaceTargetSensitivity(in.iteration, in.changed_rows, Norm::kL1));
  return std::vector<BoundValue>{{"sensitivity", l2}, {"l1_sensitivity", l1}};
}

Values KnownAnchors(const BoundInputs& in) {
  PM_ASSIGN_OR_RETURN(const double l2, KnownAnchorsSensitivity(in.iteration, in.anchors,
                                                               in.changed_rows, Norm::kL2));
  PM_ASSIGN_OR_RETURN(const double l1, KnownAnchorsSensitivity(in.iteration, in.anchors,
                                                               in.changed_rows, Norm::kL1));
  return std::vector<BoundValue>{{"sensitivity", l2}, {"l1_sensitivity", l1}};
}

Values Lipschitz(const BoundInputs& in) {
  PM_ASSIGN_OR_RETURN(const ReleaseLipschitz constant, LipschitzOfRelease(in.iteration));
  return std::vector<BoundValue>{{"lipschitz_to_l2", constant.to_l2},
                                 {"lipschitz_to_l1", constant.to_l1}};
}

template <absl::StatusOr<double> (*kBound)(const EmbeddingSettings&, const IterationInputs&)>
Values Published(const BoundInputs& in) {
  PM_ASSIGN_OR_RETURN(const double bound, kBound(in.settings, in.iteration));
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
     .compute = &Published<&PublishedGaussianSensitivity>},
    {.name = "published-laplace",
     .source = "Differentially Private Supervised Manifold Learning, corollary 1.1: as published",
     .proven = false,
     .needs_anchors = false,
     .takes_changed = false,
     .compute = &Published<&PublishedLaplaceSensitivity>},
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

absl::StatusOr<Matrix> Start(const LabelGraph& graph, const BoundRequest& request) {
  const EmbeddingSettings& settings = request.settings;
  if (settings.start == StartKind::kClasses) {
    return settings.start_stddev * graph.CodeOfRows(settings.embedding_dim);
  }
  if (request.seed.has_value()) return SeededStart(graph.size(), request);
  SecureBits bits;
  return NormalStart(graph.size(), settings.embedding_dim, settings.start_stddev, bits);
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

}  // namespace

std::string SensitivityBoundNames() {
  return absl::StrJoin(kBounds, ", ", [](std::string* out, const SensitivityBound& bound) {
    absl::StrAppend(out, bound.name);
  });
}

absl::StatusOr<NamedBound> ComputeBound(const BoundRequest& request) {
  const EmbeddingSettings& settings = request.settings;
  PM_RETURN_IF_ERROR(Validate(settings));
  PM_ASSIGN_OR_RETURN(const SensitivityBound bound, SensitivityBoundFromName(request.bound));
  PM_RETURN_IF_ERROR(CheckFields(request, bound));
  const std::set<int32_t> classes(request.anchor_labels.begin(), request.anchor_labels.end());
  std::vector<int32_t> labels(classes.begin(), classes.end());  // by slot, then of the anchors
  labels.insert(labels.end(), request.anchor_labels.begin(), request.anchor_labels.end());
  const LabelGraph graph(labels, settings.label_graph, settings.KernelDenominator());
  PM_ASSIGN_OR_RETURN(const Matrix start, Start(graph, request));
  Matrix anchors;
  if (request.anchors.has_value()) {
    if (request.anchors->rows() != std::ssize(request.anchor_labels)) {
      return InvalidField(
          "anchors", absl::StrCat("must have a row for each of the ", request.anchor_labels.size(),
                                  " labels, but has ", request.anchors->rows()));
    }
    PM_ASSIGN_OR_RETURN(anchors, UnitRows("anchors", *request.anchors));
  }
  const IterationInputs iteration{.start = start,
                                  .label_graph = graph,
                                  .alpha = settings.alpha,
                                  .kernel_denominator = settings.KernelDenominator(),
                                  .slots = std::ssize(classes)};
  NamedBound computed{.source = bound.source, .proven = bound.proven, .rows = std::ssize(labels)};
  PM_ASSIGN_OR_RETURN(computed.values,
                      bound.compute({settings, iteration, anchors, request.changed.value_or(2)}));
  return computed;
}

}  // namespace privatemail::client
