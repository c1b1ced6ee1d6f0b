// What the cells scheme finds, beside the ceiling of PRIVACY.md section 5.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_CELLS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_CELLS_H_

#include <memory>
#include <vector>

#include "client/evaluation/experiments/recall.h"
#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// Figures "cells-fidelity", "cells-precision" and "cells-recall" against epsilon in [1/2, 8], where
// the scheme works, whatever epsilons the study has: a tenth and a hundredth of the gallery are
// returned. In a second panel the papers' scheme at the same epsilons, the anchored one, and those
// private baselines that take little time; the others are in the recall experiment.
Experiment MakeCellsExperiment(std::shared_ptr<Stage> stage,
                               const std::vector<Baseline>& baselines);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_CELLS_H_
