// The baselines of client/evaluation/baselines as the recall experiment takes them.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_LIBRARY_BASELINES_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_LIBRARY_BASELINES_H_

#include <cstdint>
#include <vector>

#include "client/evaluation/experiments/recall.h"

namespace privatemail {

// All but those that the experiment has itself (the features, chance), with embeddings of so many
// columns. t-SNE and DP-dSNE, which take O(n^2) a step, embed at most so many gallery rows, evenly
// taken; the others cannot be found by them, which their names say where there are any.
std::vector<Baseline> LibraryBaselines(int64_t dimension, int64_t gallery_rows,
                                       int64_t most_joint_rows = 2000);

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_LIBRARY_BASELINES_H_
