// Retrieval metrics and their confidence intervals.
//
// - `class_share`: precision@k, the share of the k items that are of the target's class.
// - `hit`: recall@k as in the papers (Jun et al. 2019): 1 when any of the k is of the class, else
//   0.
// - `fidelity`: the share of the non-private k nearest that came back.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_METRICS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_METRICS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail::client {

// Of one target, or the mean of several; each in [0, 1].
struct Scores {
  double class_share = 0;
  double hit = 0;
  double fidelity = 0;  // share of the non-private k nearest in feature space that came back
};

// found: rows of the gallery, k of them or all that there are; labels: of the gallery; nearest: the
// k rows nearest to the target's features.
Scores ScoreOf(const std::vector<int64_t>& found, const std::vector<int32_t>& labels,
               int32_t target_label, const std::vector<int64_t>& nearest);

// Expected for k different rows drawn blindly out of the gallery: the class's share p, 1 - C(n - m,
// k)/C(n, k) for m rows of the class among n, and k/n. k is at most n.
Scores ScoresByChance(const std::vector<int32_t>& gallery_labels, int32_t target_label, int64_t k);

// Upper bounds for any (epsilon, delta)-DP release without slots, averaged over targets of classes
// with equal weight (LabelHidingCeiling, whose ranges are required): class_share of one answer, hit
// of k answers; fidelity is 1.
Scores ScoreCeilings(double epsilon, double delta, int64_t classes, int64_t k);

// The k rows of `points` nearest to each row of `queries`.
std::vector<std::vector<int64_t>> NearestOf(const Matrix& queries, const Matrix& points, int64_t k);

// A mean, and the interval that has it with a stated certainty.
struct Band {
  double mean = 0;
  double low = 0;
  double high = 0;
};

// 95 % interval of the mean score over all splits of this data set, `values_by_split` being some
// with equally many targets each; within [0, 1].
// - Several splits: Student's t over their means.
// - One split, or splits with equal means: percentile bootstrap over all targets (1,000 samples).
// - All scores 0 or all 1: the interval had one target come out otherwise, extended to that end.
Band BandOfScores(const std::vector<std::vector<double>>& values_by_split, uint64_t seed);

// Clopper and Pearson's: of the chance of an event that was seen `hits` times in `answers`.
// certainty: that it lies in the interval, half of the risk on either side.
Band BandOfShare(int64_t hits, int64_t answers, double certainty);

// Of mean(one - other) over pairs: Student's t with this certainty. Nothing where there are fewer
// than two pairs, or where all differ by the same, which has no width.
std::optional<Band> BandOfDifference(const std::vector<double>& one,
                                     const std::vector<double>& other, double certainty);

// Fieller's interval of mean(parts) / mean(wholes) for pairs, at least one; nothing where wholes
// are not certainly above 0.
std::optional<Band> BandOfRatio(const std::vector<double>& parts,
                                const std::vector<double>& wholes);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_METRICS_H_
