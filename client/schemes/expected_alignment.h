// How well releases align with a server's embedding, known before any budget is spent.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_EXPECTED_ALIGNMENT_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_EXPECTED_ALIGNMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/base/thread_pool.h"

namespace privatemail::client {

// The alignment of rows without noise and target: a function of public data, the same for every
// target.
struct ExpectedAlignment {
  // Share of the classes whose slot lands nearest to an anchor of the class. With a label, about
  // the precision@k that follows; recall@k is at least that.
  double recall = 0;
  double relative_residual = 0;  // of the anchors: 0 perfect, 1 no better than their mean
  std::optional<double> pairing_score = std::nullopt;  // of own anchors
};

// rows: (C + P) x k, a release's slots, then its anchors; slot_of_anchor: P; server_anchors: P x k.
// Errors of KabschUmeyama, and of the observer, which is called for every few slots.
absl::StatusOr<ExpectedAlignment> ExpectAlignment(const Matrix& rows,
                                                  const std::vector<int64_t>& slot_of_anchor,
                                                  const Matrix& server_anchors,
                                                  const WorkObserver& observer = nullptr);

// Queries below are refused unless the user accepts them. Measured over 72 collections of three
// data sets by the papers' settings (docs/results.md): at .9 and above a label found recall@8 .967
// or more and precision@8 .887 or more, below down to .000.
inline constexpr double kMinExpectedRecall = 0.9;
// FAILED_PRECONDITION with both figures: recall below kMinExpectedRecall; or CheckPairing refuses.
absl::Status CheckAlignment(const ExpectedAlignment& alignment);

// Whether two embeddings of the same anchors in the same order agree within the classes: the sum of
// the products of the anchors' offsets from their class means, in standard deviations of the sum
// under random orders within each class. About N(0, 1) if the rows do not belong together
// (Hoeffding 1951, "A combinatorial central limit theorem"). 0 if every
// class has one anchor. own, server: P x k, aligned.
double PairingScore(const Matrix& own, const Matrix& server,
                    const std::vector<int64_t>& slot_of_anchor);

// Wrong rows, order or model pass with probability about 2.3e-4; right ones, and those of another
// good model, score 4.5 or more with 72 anchors of 24 classes, and more with more anchors.
inline constexpr double kMinPairingScore = 3.5;
// FAILED_PRECONDITION with the score.
absl::Status CheckPairing(double score);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_EXPECTED_ALIGNMENT_H_
