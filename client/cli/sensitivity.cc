#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/flags.h"
#include "client/privacy/sensitivity/named_bounds.h"
#include "client/schemes/class_labels.h"
#include "common/base/status_macros.h"
#include "common/features/vector_file.h"

namespace privatemail::client::cli {
namespace {

struct SensitivityOptions {
  BoundRequest request;
  int64_t targets = 0;
  std::string labels_file;
  std::string anchors_file;
};

absl::StatusOr<Result> Sensitivity(const Context&, SensitivityOptions options) {
  BoundRequest& request = options.request;
  PM_ASSIGN_OR_RETURN(const LabelColumn column, ReadLabels(options.labels_file));
  PM_ASSIGN_OR_RETURN(NamedLabels named, NumberClasses("--anchor-labels", column));
  request.anchor_labels = std::move(named.labels);
  const std::vector<int32_t>& labels = request.anchor_labels;
  const auto classes = std::ssize(std::set<int32_t>(labels.begin(), labels.end()));
  if (classes != options.targets) {
    return absl::InvalidArgumentError(
        absl::StrCat("--targets must be the number of classes of the anchors, ", classes,
                     ", but is ", options.targets));
  }
  if (!options.anchors_file.empty()) {
    PM_ASSIGN_OR_RETURN(request.anchors, ReadVectors(options.anchors_file));
  }
  PM_ASSIGN_OR_RETURN(const NamedBound bound, ComputeBound(request));
  nlohmann::json json = {{"bound", request.bound},
                         {"rows", bound.rows},
                         {"proven", bound.proven},
                         {"source", bound.source}};
  for (const BoundValue& value : bound.values) json[value.key] = value.value;
  return Result{.json = json};
}

}  // namespace

void AddSensitivityCommand(CLI::App& app, Context& context) {
  const auto [command, options] =
      AddCommand(app, context, "sensitivity",
                 "Bound the change of a release when its target is replaced", &Sensitivity);
  BoundRequest& request = options->request;
  command
      ->add_option("--bound", request.bound,
                   absl::StrCat(SensitivityBoundNames(), "; releases use the first by default"))
      ->required();
  command->add_option("--targets", options->targets, "Number of slots, one per class")->required();
  command->add_option("--anchor-labels", options->labels_file, "Labels of the anchors")->required();
  command->add_option("--anchors", options->anchors_file,
                      "Their vectors (.npy .npz .fvecs .csv), for known-anchors");
  AddEmbeddingOptions(command, &request.settings);
  command->add_option("--alpha", request.settings.alpha, "Weight of the label graph")
      ->capture_default_str();
  command
      ->add_option("--changed", request.changed,
                   "Rows that differ: 2, or 1 when the class is public; for known-anchors and "
                   "replace-target")
      ->default_str("2");
  command->add_option("--seed", request.seed, "Seed of a repeatable start; secure bits if absent");
  MarkRare(command, {"--kernel", "--start-stddev", "--seed"});
}

}  // namespace privatemail::client::cli
