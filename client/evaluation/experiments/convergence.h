// Recall and objective against iterations (second paper, figure 3).
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_CONVERGENCE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_CONVERGENCE_H_

#include <memory>

#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// Two figures: scores with T iterations on either side, with and without noise; and the server's
// objective after each. The papers claim that it never rises: the words say whether it did.
Experiment MakeConvergenceExperiment(std::shared_ptr<Stage> stage);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_CONVERGENCE_H_
