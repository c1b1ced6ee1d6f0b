#include "client/evaluation/attacks/row_prediction.h"

#include "common/embedding/affinity.h"

namespace privatemail::client {

RowPrediction::RowPrediction(const JointSetting& joint)
    : joint_(joint),
      among_anchors_(
          GaussianAffinity(joint.anchors->points(), joint.anchors->kernel_denominator())),
      to_classes_(Matrix::Zero(among_anchors_.rows(), joint.slots())) {
  among_anchors_.diagonal().setOnes();
  for (int64_t c = 0; c < joint.slots(); ++c) {
    const auto& candidates = joint.of_slot[static_cast<size_t>(c)];
    for (const int64_t anchor : candidates) to_classes_.col(c) += among_anchors_.col(anchor);
    to_classes_.col(c) /= static_cast<double>(candidates.size());
  }
}

void RowPrediction::Start(const Matrix& start) {
  start_ = start;
  pull_of_labels_ = joint_.parameters.settings.alpha * joint_.label_graph.MultiplyLaplacian(start);
  sums_ = among_anchors_ * start.bottomRows(among_anchors_.rows()) +
          to_classes_ * start.topRows(joint_.slots());
  degrees_ = among_anchors_.rowwise().sum() + to_classes_.rowwise().sum();
}

Matrix RowPrediction::RowsOf(int64_t slot) const {
  // A row has no affinity to itself.
  const Vector own = to_classes_.col(slot);
  const Matrix sums =
      (sums_ - own * start_.row(slot)).rowwise() + RowVector(pull_of_labels_.row(slot));
  const Vector degrees = degrees_ - own;
  return .5 * ((sums.array().colwise() / degrees.array()).matrix().rowwise() +
               RowVector(start_.row(slot)));
}

}  // namespace privatemail::client
