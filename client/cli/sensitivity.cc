#include "client/privacy/sensitivity/sensitivity.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/flags/names.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/sensitivity/known_anchors_sensitivity.h"
#include "client/privacy/sensitivity/lipschitz.h"
#include "client/privacy/sensitivity/published_sensitivity.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/smlq.h"
#include "common/features/vector_file.h"

namespace privatemail::client::cli {
namespace {

// One iteration over a collection's labels.
struct BoundQuestion {
  EmbeddingSettings settings;
  int64_t slots = 0;
  std::vector<int32_t> labels;  // by slot, then of the anchors
  Matrix start = {};            // a row for each label
  Matrix anchors = {};          // unit rows; empty where the bound needs none
  int changed_rows = 2;
};

struct BoundValue {
  const char* key;   // in JSON
  const char* text;  // "L2 sensitivity"
  double value;
};

struct SensitivityBound {
  const char* name;
  const char* source;  // the proof, or that there is none
  bool proven;
  bool needs_anchors;  // their features, not their labels alone
  bool takes_changed;  // 1 or 2 changed rows
  absl::StatusOr<std::vector<BoundValue>> (*compute)(const BoundQuestion& question);
};

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
  PM_ASSIGN_OR_RETURN(const double bound,
                      PublishedGaussianReleaseSensitivity(question.settings, it.inputs));
  return std::vector<BoundValue>{{"sensitivity", "L2 sensitivity", bound}};
}

Values PublishedLaplace(const BoundQuestion& question) {
  const Iteration it(question);
  PM_ASSIGN_OR_RETURN(const double bound,
                      PublishedLaplaceReleaseSensitivity(question.settings, it.inputs));
  return std::vector<BoundValue>{{"sensitivity", "L2 sensitivity", bound}};
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

std::string SensitivityBoundNames() {
  return absl::StrJoin(kBounds, ", ", [](std::string* out, const SensitivityBound& bound) {
    absl::StrAppend(out, bound.name);
  });
}

absl::StatusOr<SensitivityBound> SensitivityBoundFromName(absl::string_view name) {
  for (const SensitivityBound& bound : kBounds) {
    if (name == bound.name) return bound;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--bound must be one of ", SensitivityBoundNames(), ", but is \"", name, "\""));
}

struct SensitivityOptions {
  std::string bound;
  int64_t targets = 0;
  std::string labels_file;
  std::string anchors_file;
  EmbeddingSettings settings;
  uint64_t seed = 0;
  bool seeded = false;
  int changed = 2;
  bool changed_is_set = false;
};

// For repeatable bounds only. Releases draw their start from the exact sampler.
Matrix SeededStart(Eigen::Index n, const SensitivityOptions& options) {
  std::mt19937_64 generator(options.seed);
  std::normal_distribution<double> normal(0, options.settings.start_stddev);
  return Matrix::NullaryExpr(n, options.settings.embedding_dim, [&] { return normal(generator); });
}

absl::StatusOr<Matrix> Start(const std::vector<int32_t>& labels,
                             const SensitivityOptions& options) {
  const auto n = static_cast<Eigen::Index>(labels.size());
  if (options.settings.start == StartKind::kClasses) {
    const LabelGraph graph(labels, options.settings.label_graph,
                           options.settings.KernelDenominator());
    return options.settings.start_stddev * graph.CodeOfRows(options.settings.embedding_dim);
  }
  if (options.seeded) return SeededStart(n, options);
  SecureBits bits;
  return NormalStart(n, options.settings.embedding_dim, options.settings.start_stddev, bits);
}

absl::Status CheckOptions(const SensitivityOptions& options, const SensitivityBound& bound) {
  const auto refuse = [&](absl::string_view flag) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is of no use to --bound ", bound.name, ": expected none"));
  };
  if (bound.needs_anchors && options.anchors_file.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--anchors must name the anchors' vectors with --bound ", bound.name, ", but is missing"));
  }
  if (!bound.needs_anchors && !options.anchors_file.empty()) return refuse("--anchors");
  if (!bound.takes_changed && options.changed_is_set) return refuse("--changed");
  if (!bound.proven && options.settings.kernel != KernelConvention::kTwoSigmaSquared) {
    return absl::InvalidArgumentError(
        absl::StrCat("--kernel must be two_sigma_squared with --bound ", bound.name,
                     ": the paper prints its bound for no other"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Matrix> ReadAnchors(const std::string& path, size_t labels) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix vectors, ReadVectors(path));
  if (static_cast<size_t>(vectors.rows()) != labels) {
    return absl::InvalidArgumentError(absl::StrCat("--anchors must have a row for each of the ",
                                                   labels, " labels, but has ", vectors.rows()));
  }
  return UnitRows("anchors", vectors);
}

absl::StatusOr<BoundQuestion> ReadQuestion(const SensitivityOptions& options,
                                           const SensitivityBound& bound) {
  PM_ASSIGN_OR_RETURN(const std::vector<int32_t> anchors, ReadLabels(options.labels_file));
  BoundQuestion question{.settings = options.settings,
                         .slots = options.targets,
                         .labels = anchors,
                         .changed_rows = options.changed};
  std::vector<int32_t>& labels = question.labels;
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  if (static_cast<int64_t>(labels.size()) != options.targets) {
    return absl::InvalidArgumentError(
        absl::StrCat("--targets must be the number of classes of the anchors, ", labels.size(),
                     ", but is ", options.targets));
  }
  labels.insert(labels.end(), anchors.begin(), anchors.end());
  PM_ASSIGN_OR_RETURN(question.start, Start(labels, options));
  if (bound.needs_anchors) {
    PM_ASSIGN_OR_RETURN(question.anchors, ReadAnchors(options.anchors_file, anchors.size()));
  }
  return question;
}

absl::StatusOr<Result> Sensitivity(const SensitivityOptions& options) {
  PM_RETURN_IF_ERROR(Validate(options.settings));
  PM_ASSIGN_OR_RETURN(const SensitivityBound bound, SensitivityBoundFromName(options.bound));
  PM_RETURN_IF_ERROR(CheckOptions(options, bound));
  PM_ASSIGN_OR_RETURN(const BoundQuestion question, ReadQuestion(options, bound));
  PM_ASSIGN_OR_RETURN(const std::vector<BoundValue> values, bound.compute(question));
  nlohmann::json json = {{"bound", bound.name},
                         {"rows", question.labels.size()},
                         {"proven", bound.proven},
                         {"source", bound.source}};
  for (const BoundValue& value : values) json[value.key] = value.value;
  std::string text;
  for (const BoundValue& value : values) {
    absl::StrAppend(&text, value.text, " ", FormatExact(value.value), " over ",
                    question.labels.size(), " rows\n");
  }
  absl::StrAppend(&text, bound.proven ? "proven: " : "NOT PROVEN: ", bound.source, "\n");
  return Result{.json = json, .text = text};
}

}  // namespace

void AddSensitivityCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<SensitivityOptions>();
  EmbeddingSettings& s = options->settings;
  CLI::App* command =
      AddCommand(app, "sensitivity", "Bound the change of a release when its target is replaced");
  command
      ->add_option("--bound", options->bound,
                   absl::StrCat(SensitivityBoundNames(), "; releases use the first by default"))
      ->required();
  command->add_option("--targets", options->targets, "Number of slots, one per class")->required();
  command->add_option("--anchor-labels", options->labels_file, "Labels of the anchors")->required();
  command->add_option("--anchors", options->anchors_file,
                      "Their vectors (.npy .fvecs .csv), for known-anchors");
  AddEmbeddingOptions(command, &s);
  command->add_option("--alpha", s.alpha, "Weight of the label graph")->capture_default_str();
  CLI::Option* changed =
      command
          ->add_option("--changed", options->changed,
                       "Rows that differ: 2, or 1 when the class is public; for known-anchors and "
                       "replace-target")
          ->capture_default_str();
  CLI::Option* seed = command->add_option("--seed", options->seed,
                                          "Seed of a repeatable start; secure bits if absent");
  SetRun(command, context, options, [changed, seed](const Context&, SensitivityOptions given) {
    given.changed_is_set = changed->count() > 0;
    given.seeded = seed->count() > 0;
    return Sensitivity(given);
  });
}

}  // namespace privatemail::client::cli
