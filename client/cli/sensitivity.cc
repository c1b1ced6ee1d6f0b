#include <algorithm>
#include <iostream>
#include <random>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/flags/names.h"
#include "client/cli/sensitivity_bounds.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"

namespace privatemail::client::cli {
namespace {

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

absl::StatusOr<BoundQuestion> Question(const SensitivityOptions& options,
                                       const SensitivityBound& bound) {
  PM_ASSIGN_OR_RETURN(const std::vector<int32_t> anchors, ReadLabels(options.labels_file));
  BoundQuestion question{.settings = options.settings,
                         .slots = options.targets,
                         .labels = anchors,
                         .start = {},
                         .anchors = {},
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
  PM_ASSIGN_OR_RETURN(question.start, Start(static_cast<Eigen::Index>(labels.size()), options));
  if (bound.needs_anchors) {
    PM_ASSIGN_OR_RETURN(question.anchors, ReadAnchors(options.anchors_file, anchors.size()));
  }
  return question;
}

absl::Status Sensitivity(const Context& context, const SensitivityOptions& options) {
  PM_RETURN_IF_ERROR(Validate(options.settings));
  PM_ASSIGN_OR_RETURN(const SensitivityBound bound, SensitivityBoundFromName(options.bound));
  PM_RETURN_IF_ERROR(CheckOptions(options, bound));
  PM_ASSIGN_OR_RETURN(const BoundQuestion question, Question(options, bound));
  PM_ASSIGN_OR_RETURN(const std::vector<BoundValue> values, bound.compute(question));
  nlohmann::json json = {{"bound", bound.name},
                         {"rows", question.labels.size()},
                         {"proven", bound.proven},
                         {"source", bound.source}};
  for (const BoundValue& value : values) json[value.key] = value.value;
  Answer(context, json, [&] {
    for (const BoundValue& value : values) {
      std::cout << value.text << " " << FormatExact(value.value) << " over " << question.labels.size()
                << " rows\n";
    }
    std::cout << (bound.proven ? "proven: " : "NOT PROVEN: ") << bound.source << "\n";
  });
  return absl::OkStatus();
}

}  // namespace

void AddSensitivityCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<SensitivityOptions>();
  EmbeddingSettings& s = options->settings;
  CLI::App* command =
      AddCommand(app, "sensitivity", "How far a release can move when its target is replaced");
  command
      ->add_option(
          "--bound", options->bound,
          absl::StrCat(SensitivityBoundNames(), "; the first is what releases use by default"))
      ->required();
  command->add_option("--targets", options->targets, "Slots: the number of classes")->required();
  command->add_option("--anchor-labels", options->labels_file, "Labels of the anchors")->required();
  command->add_option("--anchors", options->anchors_file,
                      "Their vectors (.npy .fvecs .csv), for known-anchors");
  command->add_option("--bandwidth", s.kernel_bandwidth, "Kernel bandwidth over unit vectors")
      ->capture_default_str();
  command->add_option("--alpha", s.alpha, "Weight of the label graph")->capture_default_str();
  command->add_option("--dim", s.embedding_dim, "Dimensions of the embedding")
      ->capture_default_str();
  AddChoice(command, "--label-graph", &s.label_graph, kLabelGraphNames, "Graph over the labels");
  AddChoice(command, "--kernel", &s.kernel, kKernelNames, "Denominator of the feature kernel");
  command->add_option("--start-stddev", s.start_stddev, "Standard deviation of the start")
      ->capture_default_str();
  CLI::Option* changed =
      command
          ->add_option("--changed", options->changed,
                       "Rows that differ: 2, or 1 when the class is public; for known-anchors and "
                       "replace-target")
          ->capture_default_str();
  CLI::Option* seed =
      command->add_option("--seed", options->seed, "Repeatable start; secure bits if absent");
  command->callback([&context, options, changed, seed] {
    options->changed_is_set = changed->count() > 0;
    options->seeded = seed->count() > 0;
    context.run = [&context, options] { return Sensitivity(context, *options); };
  });
}

}  // namespace privatemail::client::cli
