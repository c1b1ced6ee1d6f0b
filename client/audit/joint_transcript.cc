#include "client/audit/joint_transcript.h"

#include <cmath>
#include <utility>

#include "common/base/status_macros.h"

namespace privatemail::client::audit {

using Law = MechanismTraits::Law;

double LogLikelihoodRatio(const TranscriptStep& step, Law law) {
  const Matrix released = step.released.cast<double>();
  if (law == Law::kLaplace) {
    const double scale = step.noise_stddev / M_SQRT2;
    return ((released - step.other).cwiseAbs() - (released - step.one).cwiseAbs()).sum() / scale;
  }
  // A box cuts off a share that depends on the neighbours alone.
  const Matrix from_middle = released - (step.one + step.other) / 2;
  return from_middle.cwiseProduct(step.one - step.other).sum() / std::pow(step.noise_stddev, 2);
}

double LogLikelihoodRatio(const std::vector<TranscriptStep>& transcript, Law law) {
  double sum = 0;
  for (const TranscriptStep& step : transcript) sum += LogLikelihoodRatio(step, law);
  return sum;
}

absl::StatusOr<std::vector<TranscriptStep>> DrawTranscript(const JointPair& pair,
                                                           const PrivacyCost& cost,
                                                           Neighbour neighbour,
                                                           const ReleaseFn& release,
                                                           BitSource& bits) {
  PM_ASSIGN_OR_RETURN(TargetFreePart part, DrawTargetFreePart(pair.setting, cost, bits));
  const PlacedTarget& target = neighbour == Neighbour::kOne ? pair.one : pair.other;
  PM_ASSIGN_OR_RETURN(std::vector<FloatMatrix> released,
                      release(pair.setting, part, cost, target.slot, target.row, bits));

  const auto graph_of = [&](const PlacedTarget& placed) {
    return FeatureGraph(pair.setting, SlotRows(pair.setting, part, placed.slot, placed.row));
  };
  const BorderedAffinity graph_of_one = graph_of(pair.one);
  const BorderedAffinity graph_of_other = graph_of(pair.other);
  std::vector<TranscriptStep> transcript;
  Matrix start = part.start;
  IterationNoise noise = std::move(part.noise);
  for (FloatMatrix& rows : released) {
    if (!transcript.empty()) {
      start = transcript.back().released.cast<double>();
      PM_ASSIGN_OR_RETURN(noise, NoiseFrom(pair.setting, start, cost));
    }
    transcript.push_back({.one = PrivateIteration(pair.setting, start, graph_of_one),
                          .other = PrivateIteration(pair.setting, start, graph_of_other),
                          .released = std::move(rows),
                          .noise_stddev = noise.mechanism->noise_stddev(),
                          .sensitivity = noise.sensitivity});
  }
  return transcript;
}

}  // namespace privatemail::client::audit
