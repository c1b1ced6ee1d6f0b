#include "client/evaluation/experiments/all.h"

#include <algorithm>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/experiments/ablation.h"
#include "client/evaluation/experiments/alignment.h"
#include "client/evaluation/experiments/bounded_gaussian.h"
#include "client/evaluation/experiments/cell_designs.h"
#include "client/evaluation/experiments/cells.h"
#include "client/evaluation/experiments/convergence.h"
#include "client/evaluation/experiments/inference_privacy.h"
#include "client/evaluation/experiments/settings.h"

namespace privatemail {
namespace {

struct Known {
  const char* name;
  bool attack;
  std::function<Experiment()> make;
};

}  // namespace

absl::StatusOr<std::vector<Experiment>> MakeExperiments(const std::shared_ptr<Stage>& stage,
                                                        absl::string_view names, bool attacks,
                                                        const std::vector<Baseline>& baselines) {
  const std::vector<Known> all = {
      {"recall", false, [&] { return MakeRecallExperiment(stage, baselines); }},
      {"cells", false, [&] { return MakeCellsExperiment(stage, baselines); }},
      {"cell-designs", false, [&] { return MakeCellDesignsExperiment(stage); }},
      {"ablation", false, [&] { return MakeAblationExperiment(stage); }},
      {"convergence", false, [&] { return MakeConvergenceExperiment(stage); }},
      {"settings", false, [&] { return MakeSettingsExperiment(stage); }},
      {"alignment", false, [&] { return MakeAlignmentExperiment(stage); }},
      {"inference-privacy", false, [&] { return MakeInferencePrivacyExperiment(stage); }},
      {"attacks", true, [&] { return MakeAttacksExperiment(stage); }},
      {"bounded-gaussian", false,
       [&] { return MakeBoundedGaussianExperiment(stage->study().delta); }},
  };
  const std::vector<std::string> wanted = absl::StrSplit(names, ',', absl::SkipEmpty());
  for (const std::string& name : wanted) {
    if (std::any_of(all.begin(), all.end(), [&](const Known& one) { return one.name == name; })) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--experiments must be some of ",
        absl::StrJoin(all, ", ",
                      [](std::string* text, const Known& one) { absl::StrAppend(text, one.name); }),
        ", but has \"", name, "\""));
  }
  std::vector<Experiment> experiments;
  for (const Known& one : all) {
    const bool named = std::find(wanted.begin(), wanted.end(), one.name) != wanted.end();
    if (named || (one.attack ? attacks : wanted.empty())) experiments.push_back(one.make());
  }
  return experiments;
}

}  // namespace privatemail
