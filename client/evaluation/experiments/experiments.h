// The experiments of an evaluation, and their names.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_EXPERIMENTS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_EXPERIMENTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/baselines/baseline.h"
#include "client/evaluation/runner.h"
#include "client/evaluation/scene.h"
#include "client/evaluation/sweep.h"
#include "common/base/matrix.h"
#include "privatemail/bit_source.h"

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

// A baseline's scores at each epsilon, or once where it is not private.
Condition BaselineCondition(std::shared_ptr<Stage> stage, const Baseline& baseline);

// Lines: joint releases (proven mechanisms, published noise, Laplace noise in each of two
// iterations), anchored releases, private baselines. References: search over features, supervised
// embedding and joint release without noise, baselines without privacy, chance, and the one-release
// ceiling.
Experiment MakeRecallExperiment(std::shared_ptr<Stage> stage,
                                const std::vector<Baseline>& baselines);

// Figures "cells-fidelity", "cells-precision" and "cells-recall" against epsilon in [1/2, 8] with a
// tenth and a hundredth of the gallery returned; in a second panel the joint and anchored schemes
// and the fast private baselines.
Experiment MakeCellsExperiment(std::shared_ptr<Stage> stage,
                               const std::vector<Baseline>& baselines);

// Bars with and without proven Gaussian noise at the study's epsilon: unchanged, random feature,
// wrong label, no slots, other label graphs and kernels; in words (random feature - wrong label) /
// (unchanged - wrong label) with Fieller's interval.
Experiment MakeAblationExperiment(std::shared_ptr<Stage> stage);

// Two figures: scores with T iterations on either side, with and without noise; and the server's
// objective after each. The papers claim that it never rises: the words say whether it did.
Experiment MakeConvergenceExperiment(std::shared_ptr<Stage> stage);

// Three figures: embedding_dim (the papers' k), alpha and kernel_bandwidth (s), one at a time
// around the study's settings, with proven noise at its epsilon and without.
Experiment MakeSettingsExperiment(std::shared_ptr<Stage> stage);

// Dots coloured by class, at most ten: the server's anchors, and anchors and slots of one release
// at the smallest, middle and largest epsilon, before and after alignment. Words: the mean
// residual.
Experiment MakeAlignmentExperiment(std::shared_ptr<Stage> stage);

// Figures 3 to 5 of Tian and Tandon: against the radius at the study's epsilon, against epsilon at
// radius .5, and Gaussian noise on the output at several radii. Proven noise on output and input
// and on the anchored output, beside a release without noise.
Experiment MakeInferencePrivacyExperiment(std::shared_ptr<Stage> stage);

// Chen and Hale's figure 1 and table 1, for values in [0, 10] and [1, 9] that move by at most 4 and
// 2: as printed (theorem 13), exact (proven), generalised Gaussian (Liu 2019, definition 5),
// unbounded Gaussian and analytic Gaussian at the same delta. Needs no data.
//
// The generalised Gaussian's seven printed values are the sum of (2 w + D) D / epsilon over the
// values' widths w and sensitivities D.
Experiment MakeBoundedGaussianExperiment(double delta);

// The study with its rows, which should be a collection's public anchors, shared out anew: of every
// class as many rows as two fifths of the smallest one are anchors, up to a fifth of the smallest
// ask, the rest is searched. INVALID_ARGUMENT: fewer than 4 rows in a class.
absl::StatusOr<Study> TuningStudy(const Study& study);

// A grid over embedding_dim, alpha, kernel_bandwidth and steps. The figure has the ten best:
// highest fidelity@k within a hundredth of the best precision@k; its words have their scores on
// fresh splits. stage: of TuningStudy.
Experiment MakeTuneExperiment(std::shared_ptr<Stage> stage);

// All but features and chance, with the embedding's number of columns, and the fast ones once more
// with at most 32. t-SNE and DP-dSNE embed at most `most_joint_rows` gallery rows.
// FAILED_PRECONDITION from a baseline: fewer anchors than columns, or too many targets.
std::vector<Baseline> LibraryBaselines(const DataSplit& split, int64_t dimension,
                                       int64_t most_joint_rows = 2000);

// All of them, as MakeExperiments takes them, in the order of a report, with ", " between.
std::string ExperimentNames();

// names: separated by commas; empty: all, the attacks only if they are asked for. In the order of a
// report. INVALID_ARGUMENT listing all names for one that is none.
absl::StatusOr<std::vector<Experiment>> MakeExperiments(const std::shared_ptr<Stage>& stage,
                                                        absl::string_view names, bool attacks,
                                                        const std::vector<Baseline>& baselines);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_EXPERIMENTS_H_
