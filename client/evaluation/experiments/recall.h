// What comes back against epsilon (second paper, figure 6; first paper, figure 4 g and h).
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_RECALL_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_RECALL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/dataset.h"
#include "client/evaluation/job.h"
#include "client/evaluation/scene.h"
#include "client/evaluation/sweep.h"
#include "privatemail/bit_source.h"
#include "common/base/matrix.h"

namespace privatemail::client {

// Gallery and targets in a space of their own, in which the nearest rows are what comes back.
struct BaselineRows {
  Matrix gallery;  // n x any
  Matrix targets;  // m x the same
};

struct Baseline {
  std::string name;
  bool is_private = true;  // false: has no use for epsilon and is run once a seed
  std::string protects;    // whom, from whom: a sentence
  // All that whoever answers sees of a target is one release that is (epsilon, delta)-DP for any
  // two targets, whatever their classes: the ceiling bounds it.
  bool hides_targets = false;
  double work = 10;  // of one run, in releases of 100 targets
  // Embeds this share of the gallery; the rest never comes back.
  double gallery_share = 1;
  std::string remark = {};  // what sets it apart from the like: a sentence, or nothing
  std::function<absl::StatusOr<BaselineRows>(const DataSplit& split, double epsilon, double delta,
                                             BitSource& bits)>
      rows;
};

// What a baseline finds at each epsilon, or once where it is not private.
Condition BaselineCondition(std::shared_ptr<Stage> stage, const Baseline& baseline);

// Lines: the joint release with each proven mechanism and as published, with Laplace noise after
// each of two iterations, as the first paper has it (proven and published, with slots and the
// study's label graph), the anchored release with Gaussian and with Laplace noise, and the private
// baselines. References: a search over the features, the
// supervised embedding of targets and gallery together without noise (it is told the targets'
// labels), the joint release without noise, the baselines that are not private, chance, and the
// ceiling of answers that are computed from one private release alone, with the names of the lines
// that it does not bind.
Experiment MakeRecallExperiment(std::shared_ptr<Stage> stage,
                                const std::vector<Baseline>& baselines);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_RECALL_H_
