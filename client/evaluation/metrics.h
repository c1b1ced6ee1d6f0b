// How well what came back fits what was asked for.
//
// The papers measure recall@k as their reference for image retrieval does (Jun et al. 2019, named
// in section 7 of the second paper): the share of targets with at least one item of their class
// among the k. That grows with k even by chance, so reports have two:
// - `class_share`: the share of the k items that are of the target's class: precision@k.
// - `hit`: 1 when any of the k is, else 0: recall@k, the papers' definition, is its mean.
// Both ask for the class alone. `fidelity` asks what a search without privacy would have found.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_METRICS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
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

// The most that any (epsilon, delta)-DP release without slots allows, averaged over targets of
// classes with equal weight (LabelHidingCeiling, whose ranges are required). class_share: that of
// one answer, since any answer's share is a mean over its items, each of which names one class.
// hit: that of k. fidelity says nothing about classes: 1.
Scores ScoreCeilings(double epsilon, double delta, int64_t classes, int64_t k);

// The k rows of `points` nearest to each row of `queries`.
std::vector<std::vector<int64_t>> NearestOf(const Matrix& queries, const Matrix& points, int64_t k);

// A mean, and the interval that has it with a stated certainty.
struct Band {
  double mean = 0;
  double low = 0;
  double high = 0;
};

// Of the mean score over all splits of the data that there could be, each of `values_by_split`
// being one, with as many targets as any other. Scores lie in [0, 1], and so do bands.
// - Several splits: Student's t with one degree of freedom less than splits, over their means. What
//   differs from split to split, such as how a start orders the classes, is in it.
// - One split, or several whose means happen to be equal and have no width for t: 95 of 100
//   bootstrap samples of all targets (percentiles 2.5 and 97.5 of 1,000, the same for the same
//   seed). That of one split knows nothing of others.
// - Every score is 0, or every score is 1: neither has a width then. The band that there would be
//   had one target come out otherwise, with this end at 0 or 1, so that it is never narrower than
//   that of a score that is nearly the same. Of a single target: all of [0, 1].
// All splits deal the rows of one data set anew and so are not independent: nothing is said of
// other data. The bootstrap over targets and seeds is not used for several splits, since
// of five it covers about eight times in ten, and t as often as it says.
Band BandOfScores(const std::vector<std::vector<double>>& values_by_split, uint64_t seed);

// Clopper and Pearson's: of the chance of an event that was seen `hits` times in `answers`.
// certainty: that it lies in the interval, half of the risk on either side.
Band BandOfShare(int64_t hits, int64_t answers, double certainty);

// Of mean(one - other) over pairs: Student's t with this certainty. Nothing where there are fewer
// than two pairs, or where all differ by the same, which has no width.
std::optional<Band> BandOfDifference(const std::vector<double>& one,
                                     const std::vector<double>& other, double certainty);

// Of mean(parts) / mean(wholes), Fieller's interval for pairs: all ratios r for which Student's t
// does not tell the mean of part - r whole from 0. Requires as many of one as of the other, at
// least one. Nothing where wholes are not certainly above 0: the ratio could then be anything.
std::optional<Band> BandOfRatio(const std::vector<double>& parts,
                                const std::vector<double>& wholes);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_METRICS_H_
