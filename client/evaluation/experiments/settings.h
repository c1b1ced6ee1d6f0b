// How much depends on the embedding's settings (second paper, figure 5), and a search for good
// ones.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_SETTINGS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_SETTINGS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail {

// Three figures: embedding_dim (the papers' k), alpha and kernel_bandwidth (s), one at a time
// around the study's settings, with proven noise at its epsilon and without.
Experiment MakeSettingsExperiment(std::shared_ptr<Stage> stage);

// A grid over the three and steps. The study's data are public anchors, which are shared out anew:
// two fifths of each class are anchors, one fifth asks, the rest is searched. So nothing private is
// read and no budget spent. The figure has the ten best, by precision@k at the study's epsilon and,
// where that differs by less than a hundredth, by fidelity@k; its words the flags of the best.
// stage: of TuningStudy.
Experiment MakeTuneExperiment(std::shared_ptr<Stage> stage);

// INVALID_ARGUMENT: fewer than 4 anchors in a class.
absl::StatusOr<Study> TuningStudy(const Study& study);

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_SETTINGS_H_
