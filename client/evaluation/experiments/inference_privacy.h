// Inference Privacy (Tian and Tandon, figures 3 to 6): targets within a radius of each other are
// hidden, and the class is not.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_INFERENCE_PRIVACY_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_INFERENCE_PRIVACY_H_

#include <memory>

#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail {

// Two figures, against the radius at the study's epsilon and against epsilon at a radius of .5:
// proven noise on the output (Gaussian and Laplace) and on the input, beside a release without
// noise.
Experiment MakeInferencePrivacyExperiment(std::shared_ptr<Stage> stage);

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_INFERENCE_PRIVACY_H_
