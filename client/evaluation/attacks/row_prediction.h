// What an attacker who knows everything public expects in a slot's row.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_ROW_PREDICTION_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_ROW_PREDICTION_H_

#include <cstdint>

#include "client/schemes/joint/joint_steps.h"
#include "common/base/matrix.h"

namespace privatemail::client {

// Of one collection whose dummies are drawn among the anchors, which must outlive it. Start before
// RowsOf. Not thread-safe. Uses public values, and a start that the attacker is given.
class RowPrediction {
 public:
  explicit RowPrediction(const JointSetting& joint);

  // Row i: the row of `slot` in an iteration without noise from `start`, were anchor i in it. The
  // dummies of the other slots, which are not known, are taken at the mean affinity of their
  // class. anchors x embedding_dim; O(p^2 k) time, of which Start does the most once.
  Matrix RowsOf(int64_t slot) const;
  void Start(const Matrix& start);  // (slots + anchors) x embedding_dim

 private:
  const JointSetting& joint_;
  Matrix among_anchors_;  // p x p affinities, an anchor's to a copy of itself 1
  Matrix to_classes_;     // p x C: mean affinity to the candidates of each class
  Matrix start_;
  Matrix pull_of_labels_;  // alpha L_Y start
  Matrix sums_;            // p x k: of start over all rows but one's own slot's, weighted
  Vector degrees_;         // p: the weights, all slots' included
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_ROW_PREDICTION_H_
