// Embeddings before and after alignment (first paper, figure 4 a to f; second paper, figure 7).
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_ALIGNMENT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_ALIGNMENT_H_

#include <memory>

#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// Dots coloured by class, of at most ten classes spread over all: the server's anchors, and at the
// study's smallest, middle and largest epsilon (proven Gaussian noise) the anchors and slots of one
// release after post-processing, as they are and aligned. The first two coordinates. The words have
// the anchors' residual, as a mean over seeds.
Experiment MakeAlignmentExperiment(std::shared_ptr<Stage> stage);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_ALIGNMENT_H_
