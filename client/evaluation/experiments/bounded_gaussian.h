// How much noise the bounded Gaussian needs (Chen and Hale, figure 1 and table 1).
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_BOUNDED_GAUSSIAN_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_BOUNDED_GAUSSIAN_H_

#include "client/evaluation/job.h"

namespace privatemail {

// Variance against epsilon for the document's query of two values, in [0, 10] and [1, 9] with an L2
// sensitivity of sqrt(20): as printed (theorem 13), exact (ours, proven), and, unbounded, the
// Gaussian of sqrt(2 ln(1.25 / delta)) D / epsilon and the analytic one at the same delta. Needs no
// data.
Experiment MakeBoundedGaussianExperiment(double delta);

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_BOUNDED_GAUSSIAN_H_
