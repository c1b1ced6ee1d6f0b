// How much noise the bounded Gaussian needs (Chen and Hale, figure 1 and table 1).
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_BOUNDED_GAUSSIAN_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_BOUNDED_GAUSSIAN_H_

#include "client/evaluation/job.h"

namespace privatemail::client {

// Variance against epsilon for the document's query of two values, in [0, 10] and [1, 9], which
// move by 4 and 2 at most, by sqrt(20) together: as printed (theorem 13); exact (ours, proven); of
// the generalised Gaussian that the document compares with (Liu 2019, definition 5); and,
// unbounded, the Gaussian of sqrt(2 ln(1.25 / delta)) D / epsilon, proven below epsilon 1, and the
// analytic one at the same delta. Needs no data.
//
// The document prints no formula for the generalised Gaussian, but seven values. All of them are
// the sum of (2 w + D) D / epsilon over the values' widths w and sensitivities D: densities and
// normalisers of two truncated Gaussians then differ by factors of exp(epsilon / 2) at most.
Experiment MakeBoundedGaussianExperiment(double delta);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_BOUNDED_GAUSSIAN_H_
