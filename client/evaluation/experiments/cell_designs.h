// Other ways to make cells and to ask for them, beside the one that is built.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_CELL_DESIGNS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_CELL_DESIGNS_H_

#include <memory>

#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// Figures "cell-designs-recall", "-precision" and "-fidelity" against epsilon 1, 2, 4 and 8, a
// tenth of the gallery returned; each design with the number of cells, and whatever else it leaves
// open, that is expected to find most. With study.cells a line more: that design as it is given.
Experiment MakeCellDesignsExperiment(std::shared_ptr<Stage> stage);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_CELL_DESIGNS_H_
