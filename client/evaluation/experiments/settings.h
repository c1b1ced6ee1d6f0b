// How much depends on the embedding's settings (second paper, figure 5).
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_SETTINGS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_SETTINGS_H_

#include <memory>

#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// Three figures: embedding_dim (the papers' k), alpha and kernel_bandwidth (s), one at a time
// around the study's settings, with proven noise at its epsilon and without.
Experiment MakeSettingsExperiment(std::shared_ptr<Stage> stage);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_SETTINGS_H_
