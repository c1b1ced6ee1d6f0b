// What recall owes to the features, to the label, to the slots and to the settings: what the papers
// do not show.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_ABLATION_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_ABLATION_H_

#include <memory>

#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// Bars with proven Gaussian noise at the study's epsilon, and without noise: as it is, with a
// random feature in place of the target's, with a wrong label, without slots, with each of the
// other label graphs, under the alpha that is usual for it, and kernel conventions (on the server,
// too). In words, what the label alone gives: (random feature - wrong label) / (as it is - wrong
// label), with Fieller's interval, or that nothing can be said where the right label is not shown
// to be better than a wrong one.
Experiment MakeAblationExperiment(std::shared_ptr<Stage> stage);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_ABLATION_H_
