#include "client/evaluation/cell_law.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "client/privacy/sampling/exact_sampling.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// The probability that a uniform choice of `taken` among `size` has none of `avoided` of them.
double NoneTaken(int64_t size, int64_t taken, int64_t avoided) {
  double none = 1;
  for (int64_t i = 0; i < avoided; ++i) {
    none *=
        static_cast<double>(std::max<int64_t>(0, size - taken - i)) / static_cast<double>(size - i);
  }
  return none;
}

}  // namespace

CellLaw::CellLaw(CellMechanism mechanism)
    : mechanism_(std::move(mechanism)), overlaps_(mechanism_.OverlapProbabilities()) {}

absl::StatusOr<CellLaw> CellLaw::Step(const CellChoice& choice) {
  PM_ASSIGN_OR_RETURN(CellMechanism mechanism, CellMechanism::Create(choice));
  return CellLaw(std::move(mechanism));
}

absl::StatusOr<CellLaw> CellLaw::Graded(int64_t cells, double epsilon) {
  PM_ASSIGN_OR_RETURN(CellLaw law,
                      Step({.cells = cells, .ask = 1, .focus = 1, .epsilon = epsilon}));
  double sum = 0;
  for (int64_t rank = 0; rank < cells; ++rank) {
    const double weight =
        std::exp(-epsilon * static_cast<double>(rank) / static_cast<double>(cells - 1));
    law.rank_probabilities_.push_back(weight);
    sum += weight;
  }
  for (double& probability : law.rank_probabilities_) probability /= sum;
  return law;
}

absl::StatusOr<std::vector<int64_t>> CellLaw::Draw(const std::vector<int64_t>& ranked,
                                                   BitSource& bits) const {
  const CellChoice& choice = mechanism_.choice();
  if (!graded()) return mechanism_.Choose({ranked.begin(), ranked.begin() + choice.focus}, bits);
  constexpr uint64_t kLossOfARank = uint64_t{1} << 20;
  std::vector<uint64_t> losses;
  for (uint64_t rank = 0; rank < ranked.size(); ++rank) losses.push_back(rank * kLossOfARank);
  // Rounded up: epsilon at the most.
  const double scale = std::ceil(static_cast<double>(losses.back()) / choice.epsilon);
  PM_ASSIGN_OR_RETURN(const int64_t rank,
                      SampleExponentialMechanism(losses, static_cast<uint64_t>(scale), bits));
  return std::vector<int64_t>{ranked[static_cast<size_t>(rank)]};
}

double CellLaw::AnyAsked(const std::vector<int64_t>& ranks) const {
  if (graded()) {
    double asked = 0;
    for (const int64_t rank : ranks) asked += rank_probabilities_[static_cast<size_t>(rank)];
    return asked;
  }
  const auto& [cells, ask, focus, epsilon] = mechanism_.choice();
  const int64_t best =
      std::count_if(ranks.begin(), ranks.end(), [t = focus](int64_t rank) { return rank < t; });
  double none = 0;
  for (int64_t overlap = 0; overlap <= focus; ++overlap) {
    const double probability = overlaps_[static_cast<size_t>(overlap)];
    if (probability == 0) continue;
    none += probability * NoneTaken(focus, overlap, best) *
            NoneTaken(cells - focus, ask - overlap, std::ssize(ranks) - best);
  }
  return 1 - none;
}

}  // namespace privatemail::client
