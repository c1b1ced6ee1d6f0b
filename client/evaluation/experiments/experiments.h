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
#include "client/evaluation/dataset.h"
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

// Figures "cells-fidelity", "cells-precision" and "cells-recall" against epsilon in [1/2, 8], where
// the scheme works, whatever epsilons the study has: a tenth and a hundredth of the gallery are
// returned. In a second panel the papers' scheme at the same epsilons, the anchored one, and those
// private baselines that take little time; the others are in the recall experiment.
Experiment MakeCellsExperiment(std::shared_ptr<Stage> stage,
                               const std::vector<Baseline>& baselines);

// Bars with proven Gaussian noise at the study's epsilon, and without noise: as it is, with a
// random feature in place of the target's, with a wrong label, without slots, with each of the
// other label graphs, under the alpha that is usual for it, and kernel conventions (on the server,
// too). In words, what the label alone gives: (random feature - wrong label) / (as it is - wrong
// label), with Fieller's interval, or that nothing can be said where the right label is not shown
// to be better than a wrong one.
Experiment MakeAblationExperiment(std::shared_ptr<Stage> stage);

// Two figures: scores with T iterations on either side, with and without noise; and the server's
// objective after each. The papers claim that it never rises: the words say whether it did.
Experiment MakeConvergenceExperiment(std::shared_ptr<Stage> stage);

// Three figures: embedding_dim (the papers' k), alpha and kernel_bandwidth (s), one at a time
// around the study's settings, with proven noise at its epsilon and without.
Experiment MakeSettingsExperiment(std::shared_ptr<Stage> stage);

// Dots coloured by class, of at most ten classes spread over all: the server's anchors, and at the
// study's smallest, middle and largest epsilon (proven Gaussian noise) the anchors and slots of one
// release after post-processing, as they are and aligned. The first two coordinates. The words have
// the anchors' residual, as a mean over seeds.
Experiment MakeAlignmentExperiment(std::shared_ptr<Stage> stage);

// Three figures in the form of the document's: against the radius at the study's epsilon (its
// figure 3) and against epsilon at a radius of .5 (its 4), each with proven noise on the output
// (Gaussian and Laplace) and on the input, and on the output of the anchored scheme; and against
// epsilon for Gaussian noise on the output at several radii (its 5); all beside a release without
// noise. Its figure 6 compares two sets of data: one run on each.
Experiment MakeInferencePrivacyExperiment(std::shared_ptr<Stage> stage);

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

// The study with its rows, which should be a collection's public anchors, shared out anew: of every
// class as many rows as two fifths of the smallest one are anchors, up to a fifth of the smallest
// ask, the rest is searched. INVALID_ARGUMENT: fewer than 4 rows in a class.
absl::StatusOr<Study> TuningStudy(const Study& study);

// A grid over embedding_dim, alpha, kernel_bandwidth and steps. The figure has the ten best, each
// of the highest fidelity@k among those whose precision@k at the study's epsilon is within a
// hundredth of the best that is left. Since the best of many tends to look better than it is, its
// words have its scores on as many fresh splits, asked while it is drawn. stage: of TuningStudy.
Experiment MakeTuneExperiment(std::shared_ptr<Stage> stage);

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

// All of them, as MakeExperiments takes them, in the order of a report, with ", " between.
std::string ExperimentNames();

// names: separated by commas; empty: all, the attacks only if they are asked for. In the order of a
// report. INVALID_ARGUMENT listing all names for one that is none.
absl::StatusOr<std::vector<Experiment>> MakeExperiments(const std::shared_ptr<Stage>& stage,
                                                        absl::string_view names, bool attacks,
                                                        const std::vector<Baseline>& baselines);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_EXPERIMENTS_EXPERIMENTS_H_
