#include "client/privacy/sensitivity.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/names.h"
#include "client/privacy/additive_mechanism.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"

namespace privatemail::cli {
namespace {

struct SensitivityOptions {
  std::string bound;
  int64_t targets = 0;
  std::string labels_file;
  EmbeddingSettings settings;
  uint64_t seed = 0;
  bool seeded = false;
  int changed = 2;
};

// A start for looking at bounds, never for a release: those draw theirs from the exact sampler.
Matrix SeededStart(Eigen::Index n, const SensitivityOptions& options) {
  std::mt19937_64 generator(options.seed);
  std::normal_distribution<double> normal(0, options.settings.start_stddev);
  return Matrix::NullaryExpr(n, options.settings.embedding_dim, [&] { return normal(generator); });
}

absl::StatusOr<Matrix> Start(Eigen::Index n, const SensitivityOptions& options) {
  if (options.seeded) return SeededStart(n, options);
  SecureBits bits;
  return NormalStart(n, options.settings.embedding_dim, options.settings.start_stddev, bits);
}

absl::StatusOr<double> Bound(const SensitivityOptions& options, const Matrix& start,
                             const std::vector<int32_t>& labels) {
  const EmbeddingSettings& s = options.settings;
  if (options.bound == "published-gaussian") {
    if (s.kernel != KernelConvention::kTwoSigmaSquared) {
      return absl::InvalidArgumentError(
          "--kernel must be two_sigma_squared with --bound published-gaussian: the paper prints "
          "its bound for no other");
    }
    PM_ASSIGN_OR_RETURN(const PublishedGaussianBound bound,
                        PublishedGaussianSensitivity(start.rows(), s.alpha, s.kernel_bandwidth,
                                                     options.targets - 1, start.norm()));
    return bound.sensitivity_as_printed;
  }
  if (options.bound != "replace-target") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--bound must be replace-target or published-gaussian, but is \"", options.bound, "\""));
  }
  const LabelGraph graph(labels, s.label_graph, s.KernelDenominator());
  return ReplaceTargetSensitivity({.start = start,
                                   .label_graph = graph,
                                   .alpha = s.alpha,
                                   .kernel_denominator = s.KernelDenominator(),
                                   .slots = options.targets},
                                  options.changed);
}

absl::Status Sensitivity(const Context& context, const SensitivityOptions& options) {
  PM_RETURN_IF_ERROR(Validate(options.settings));
  PM_ASSIGN_OR_RETURN(const std::vector<int32_t> anchors, ReadLabels(options.labels_file));
  std::vector<int32_t> labels = anchors;
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  if (static_cast<int64_t>(labels.size()) != options.targets) {
    return absl::InvalidArgumentError(
        absl::StrCat("--targets must be the number of classes of the anchors, ", labels.size(),
                     ", but is ", options.targets));
  }
  labels.insert(labels.end(), anchors.begin(), anchors.end());
  PM_ASSIGN_OR_RETURN(const Matrix start, Start(static_cast<Eigen::Index>(labels.size()), options));
  PM_ASSIGN_OR_RETURN(const double bound, Bound(options, start, labels));
  const bool proven = options.bound == "replace-target";
  Answer(context,
         {{"sensitivity", bound},
          {"bound", options.bound},
          {"rows", start.rows()},
          {"proven", proven}},
         [&] {
           std::cout << "L2 sensitivity " << bound << " over " << start.rows() << " rows ("
                     << (proven ? "proven, PRIVACY.md section 4" : "as published, NOT proven")
                     << ")\n";
         });
  return absl::OkStatus();
}

}  // namespace

void AddSensitivityCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<SensitivityOptions>();
  EmbeddingSettings& s = options->settings;
  CLI::App* command =
      AddCommand(app, "sensitivity", "How far a release can move when its target is replaced");
  command->add_option("--bound", options->bound, "replace-target or published-gaussian")
      ->required();
  command->add_option("--targets", options->targets, "Slots: the number of classes")->required();
  command->add_option("--anchor-labels", options->labels_file, "Labels of the anchors")->required();
  command->add_option("--bandwidth", s.kernel_bandwidth, "Kernel bandwidth over unit vectors")
      ->capture_default_str();
  command->add_option("--alpha", s.alpha, "Weight of the label graph")->capture_default_str();
  command->add_option("--dim", s.embedding_dim, "Dimensions of the embedding")
      ->capture_default_str();
  AddChoice(command, "--label-graph", &s.label_graph, kLabelGraphNames, "Graph over the labels");
  AddChoice(command, "--kernel", &s.kernel, kKernelNames, "Denominator of the feature kernel");
  command->add_option("--start-stddev", s.start_stddev, "Standard deviation of the start")
      ->capture_default_str();
  command
      ->add_option("--changed", options->changed,
                   "Rows that differ: 2, or 1 when the class is public")
      ->capture_default_str();
  CLI::Option* seed =
      command->add_option("--seed", options->seed, "Repeatable start; secure bits if absent");
  command->callback([&context, options, seed] {
    options->seeded = seed->count() > 0;
    context.run = [&context, options] { return Sensitivity(context, *options); };
  });
}

}  // namespace privatemail::cli
