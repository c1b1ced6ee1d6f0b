// The baselines of client/evaluation/baselines as the recall experiment takes them.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_LIBRARY_BASELINES_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_LIBRARY_BASELINES_H_

#include <cstdint>
#include <vector>

#include "client/evaluation/dataset.h"
#include "client/evaluation/experiments/recall.h"

namespace privatemail::client {

// All but those that the experiment has itself (the features, chance), of as many columns as the
// embedding, or as the features where these have fewer; those that take little time once more, of
// 32 columns at most. Their names say how many, and where a formula is as published. t-SNE and
// DP-dSNE, which take O(n^2) a step, embed at most so many gallery rows, evenly taken; the others
// cannot be found by them, which their names say where there are any.
//
// split: any of the study's. What a baseline cannot do with one of them, or with an epsilon, is
// FAILED_PRECONDITION: there are fewer anchors than columns, or too many targets to be embedded.
std::vector<Baseline> LibraryBaselines(const DataSplit& split, int64_t dimension,
                                       int64_t most_joint_rows = 2000);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_LIBRARY_BASELINES_H_
