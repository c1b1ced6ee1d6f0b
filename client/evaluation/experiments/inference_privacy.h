// Inference Privacy (Tian and Tandon): targets within a radius of each other are hidden, and the
// class is not.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_INFERENCE_PRIVACY_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_INFERENCE_PRIVACY_H_

#include <memory>

#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// Three figures in the form of the document's: against the radius at the study's epsilon (its
// figure 3) and against epsilon at a radius of .5 (its 4), each with proven noise on the output
// (Gaussian and Laplace) and on the input, and on the output of the anchored scheme; and against
// epsilon for Gaussian noise on the output at several radii (its 5); all beside a release without
// noise. Its figure 6 compares two sets of data: one run on each.
Experiment MakeInferencePrivacyExperiment(std::shared_ptr<Stage> stage);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_INFERENCE_PRIVACY_H_
