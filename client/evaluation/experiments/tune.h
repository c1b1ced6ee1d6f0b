// A search for good settings on rows that are public.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_TUNE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_TUNE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// The study with its rows, which should be a collection's public anchors, shared out anew: of every
// class as many rows as two fifths of the smallest one are anchors, up to a fifth of the smallest
// ask, the rest is searched. INVALID_ARGUMENT: fewer than 4 rows in a class.
absl::StatusOr<Study> TuningStudy(const Study& study);

// A grid over embedding_dim, alpha, kernel_bandwidth and steps. The figure has the ten best, each
// of the highest fidelity@k among those whose precision@k at the study's epsilon is within a
// hundredth of the best that is left. Since the best of many tends to look better than it is, its
// words have its scores on as many fresh splits, asked while it is drawn. stage: of TuningStudy.
Experiment MakeTuneExperiment(std::shared_ptr<Stage> stage);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_TUNE_H_
