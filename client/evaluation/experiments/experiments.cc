#include "client/evaluation/experiments/experiments.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/evaluation/attacks/attacks.h"

namespace privatemail::client {
namespace {

using SharedStage = std::shared_ptr<Stage>;
using Baselines = std::vector<Baseline>;

struct Known {
  const char* name;
  bool attack;
  std::function<Experiment(const SharedStage& stage, const Baselines& baselines)> make;
};

std::function<Experiment(const SharedStage&, const Baselines&)> Alone(
    Experiment (*make)(SharedStage stage)) {
  return [make](const SharedStage& stage, const Baselines&) { return make(stage); };
}

// In the order of a report.
const std::vector<Known>& AllKnown() {
  static const auto* const all = new std::vector<Known>{
      {"recall", false, &MakeRecallExperiment},
      {"cells", false, &MakeCellsExperiment},
      {"ablation", false, Alone(&MakeAblationExperiment)},
      {"convergence", false, Alone(&MakeConvergenceExperiment)},
      {"settings", false, Alone(&MakeSettingsExperiment)},
      {"alignment", false, Alone(&MakeAlignmentExperiment)},
      {"inference-privacy", false, Alone(&MakeInferencePrivacyExperiment)},
      {"attacks", true, Alone(&MakeAttacksExperiment)},
      {"bounded-gaussian", false,
       [](const SharedStage& stage, const Baselines&) {
         return MakeBoundedGaussianExperiment(stage->study().delta);
       }},
  };
  return *all;
}

}  // namespace

std::string ExperimentNames() {
  return absl::StrJoin(AllKnown(), ", ", [](std::string* text, const Known& one) {
    absl::StrAppend(text, one.name);
  });
}

absl::StatusOr<std::vector<Experiment>> MakeExperiments(const std::shared_ptr<Stage>& stage,
                                                        absl::string_view names, bool attacks,
                                                        const std::vector<Baseline>& baselines) {
  const std::vector<Known>& all = AllKnown();
  const std::vector<std::string> wanted = absl::StrSplit(names, ',', absl::SkipEmpty());
  for (const std::string& name : wanted) {
    if (std::any_of(all.begin(), all.end(), [&](const Known& one) { return one.name == name; })) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("--experiments must be some of ",
                                                   ExperimentNames(), ", but has \"", name, "\""));
  }
  std::vector<Experiment> experiments;
  for (const Known& one : all) {
    const bool named = std::find(wanted.begin(), wanted.end(), one.name) != wanted.end();
    if (named || (one.attack ? attacks : wanted.empty()))
      experiments.push_back(one.make(stage, baselines));
  }
  return experiments;
}

}  // namespace privatemail::client
