#include "client/audit/baseline_attacks.h"

#include <cmath>

#include "client/baselines/linear_baselines.h"
#include "client/baselines/ppca.h"
#include "client/baselines/tsne.h"
#include "common/base/status_macros.h"

namespace privatemail::client::audit {
namespace {

using baselines::Cost;

constexpr int64_t kFewReleases = 50'000;  // of steps that calibrate their noise each time
constexpr int64_t kManyReleases = 200'000;

// `first` rows along the first axis of the plane, then `second` along the second.
Matrix RowsAlongAxes(int64_t first, int64_t second) {
  Matrix rows = Matrix::Zero(first + second, 2);
  rows.col(0).head(first).setOnes();
  rows.col(1).tail(second).setOnes();
  return rows;
}

absl::StatusOr<Subject> AttackAnalyseGauss(const Cost& cost) {
  SecureBits bits;
  PM_ASSIGN_OR_RETURN(const baselines::NoisySecondMoments any,
                      baselines::ReleaseSecondMoments(RowsAlongAxes(1, 0), cost, bits));
  const EventFn event = [cost](Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
    const bool one = neighbour == Neighbour::kOne;
    PM_ASSIGN_OR_RETURN(
        const baselines::NoisySecondMoments noisy,
        baselines::ReleaseSecondMoments(RowsAlongAxes(one ? 1 : 0, one ? 0 : 1), cost, bits));
    return noisy.moments(0, 0) > noisy.moments(1, 1);
  };
  return Subject{.mechanism = "analyse-gauss",
                 .claim = any.guarantee,
                 .attacks = {MakeEventAttack("one row along either axis, the nearer moments", event,
                                             kFewReleases)}};
}

absl::StatusOr<Subject> AttackRandomProjection(const Cost& cost) {
  Matrix projection = Matrix::Zero(3, 2);
  projection.diagonal() << 3, 4;
  const auto release = [cost, projection](double target, BitSource& bits) {
    Matrix row(1, 3);
    row << 0, target, 0;
    return baselines::ReleaseSketch(row, projection, cost, bits);
  };
  SecureBits bits;
  PM_ASSIGN_OR_RETURN(const baselines::NoisySketch any, release(1, bits));
  const EventFn event = [release](Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
    PM_ASSIGN_OR_RETURN(const baselines::NoisySketch sketch,
                        release(neighbour == Neighbour::kOne ? 1 : -1, bits));
    return sketch.rows(0, 1) > 0;
  };
  return Subject{
      .mechanism = "random-projection",
      .claim = any.guarantee,
      .attacks = {MakeEventAttack("targets along the singular vector and opposite, the nearer",
                                  event, kFewReleases)}};
}

absl::StatusOr<Subject> AttackDpDsne(const Cost& cost) {
  constexpr double kClip = .01;
  constexpr int64_t kSteps = 4;  // the cost is theirs together
  PM_ASSIGN_OR_RETURN(const baselines::NoisyGradients noise,
                      baselines::NoisyGradients::Make(kClip, kSteps, 2, cost));
  const EventFn event = [noise](Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
    Matrix gradient(1, 2);
    gradient << 3, 4;  // far longer than the clip
    if (neighbour == Neighbour::kOther) gradient = -gradient;
    Matrix sum = Matrix::Zero(1, 2);
    for (int64_t step = 0; step < kSteps; ++step) {
      PM_ASSIGN_OR_RETURN(const Matrix released, noise.Release(gradient, bits));
      sum += released;
    }
    return 3 * sum(0, 0) + 4 * sum(0, 1) > 0;
  };
  return Subject{
      .mechanism = "dp-dsne",
      .claim = noise.guarantee(),
      .attacks = {MakeEventAttack("opposite clipped gradients in each of four steps, the nearer",
                                  event, kManyReleases)}};
}

// Neighbour::kOne has one of four rows along the second axis, which is then likelier.
Matrix FourRows(Neighbour neighbour) {
  return neighbour == Neighbour::kOne ? RowsAlongAxes(3, 1) : RowsAlongAxes(4, 0);
}

absl::StatusOr<Subject> AttackPublishedPpca(const Cost& cost) {
  const EventFn event = [cost](Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
    PM_ASSIGN_OR_RETURN(const Matrix axis, baselines::DrawPublishedSubspace(
                                               FourRows(neighbour), {.dimension = 1}, cost, bits));
    constexpr double kDegrees = M_PI / 180;
    return std::abs(axis(1, 0)) > std::cos(15 * kDegrees);
  };
  // Two columns of three use the Gibbs sampler. The axis that they leave out is equally likely near
  // either of two empty axes, and less likely near one with a row.
  const EventFn of_two = [cost](Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
    Matrix rows = Matrix::Zero(4, 3);
    rows.leftCols(2) = FourRows(neighbour == Neighbour::kOne ? Neighbour::kOther : Neighbour::kOne);
    PM_ASSIGN_OR_RETURN(const Matrix plane,
                        baselines::DrawPublishedSubspace(rows, {.dimension = 2}, cost, bits));
    constexpr double kSine = .2588190451;  // of 15 degrees
    return plane.row(1).norm() < kSine;
  };
  return Subject{
      .mechanism = "published-ppca",
      .claim = baselines::PublishedPpcaGuarantee(cost),
      .attacks = {
          MakeEventAttack("one row of four along the other axis, that axis within 15 degrees",
                          event, kManyReleases),
          MakeEventAttack("two columns of three by the Gibbs sampler, the axis that they leave out "
                          "within 15 degrees",
                          of_two, kFewReleases)}};
}

absl::StatusOr<Subject> AttackCandidatePpca(const Cost& cost) {
  const std::vector<Matrix> axes = {Matrix::Identity(2, 2).col(0), Matrix::Identity(2, 2).col(1)};
  const EventFn event = [cost, axes](Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
    PM_ASSIGN_OR_RETURN(const int64_t chosen,
                        baselines::ChooseSubspace(FourRows(neighbour), axes, cost, bits));
    return chosen == 1;
  };
  return Subject{.mechanism = "candidate-ppca",
                 .claim = baselines::CandidatePpcaGuarantee(cost),
                 .attacks = {MakeEventAttack("one row of four along the other axis, that axis",
                                             event, kManyReleases)}};
}

constexpr BaselineStep kSteps[] = {
    {"analyse-gauss", true, AttackAnalyseGauss},
    {"published-ppca", false, AttackPublishedPpca},
    {"candidate-ppca", false, AttackCandidatePpca},
    {"random-projection", true, AttackRandomProjection},
    {"dp-dsne", true, AttackDpDsne},
};

}  // namespace

absl::Span<const BaselineStep> BaselineSteps() { return kSteps; }

const BaselineStep* BaselineStepFromName(absl::string_view name) {
  for (const BaselineStep& step : kSteps) {
    if (name == step.name) return &step;
  }
  return nullptr;
}

}  // namespace privatemail::client::audit
