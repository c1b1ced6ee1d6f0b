// What tests that search for a counterexample to a bound share.
#ifndef PRIVATEMAIL_TESTS_UNIT_PRIVACY_ADVERSARY_H_
#define PRIVATEMAIL_TESTS_UNIT_PRIVACY_ADVERSARY_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "client/privacy/sensitivity.h"
#include "common/numerics/smlq.h"
#include "common/numerics/tiled_affinity.h"

namespace privatemail {

// Seeded draws.
class Adversary {
 public:
  explicit Adversary(unsigned seed) : bits_(seed) {}

  Matrix Normal(Eigen::Index n, Eigen::Index d) {
    return Matrix::NullaryExpr(n, d, [&] { return normal_(bits_); });
  }
  Matrix UnitRows(Eigen::Index n, Eigen::Index d) { return Normal(n, d).rowwise().normalized(); }
  Eigen::Index Draw(Eigen::Index bound) {
    return static_cast<Eigen::Index>(static_cast<unsigned>(bits_()) % static_cast<unsigned>(bound));
  }

 private:
  std::mt19937 bits_;
  std::normal_distribution<double> normal_;
};

// The public side of an iteration, and the production iteration on it. Labels go round the slots.
struct Setting {
  Matrix start;
  LabelGraph graph;
  double alpha;
  double c;  // the kernel's denominator
  int64_t slots;

  Setting(Matrix q, double bandwidth, double weight, int64_t slot_count,
          LabelGraphKind kind = LabelGraphKind::kDistance)
      : start(std::move(q)),
        graph(Labels(start.rows(), slot_count), kind, 2 * bandwidth * bandwidth),
        alpha(weight),
        c(2 * bandwidth * bandwidth),
        slots(slot_count) {}

  // Refers to this setting.
  IterationInputs Inputs() const {
    return {.start = start,
            .label_graph = graph,
            .alpha = alpha,
            .kernel_denominator = c,
            .slots = slots};
  }

  Matrix Iterate(const Matrix& rows) const {
    return SmlqUpdate(start, TiledAffinity(rows, c), graph, alpha).value();
  }

 private:
  static std::vector<int32_t> Labels(Eigen::Index n, int64_t slots) {
    std::vector<int32_t> labels;
    for (Eigen::Index i = 0; i < n; ++i) labels.push_back(static_cast<int32_t>(i % slots));
    return labels;
  }
};

// Random ascent on gain(state): tries `steps` times what propose(state, scale) makes of the best
// state, at a scale that grows with success and shrinks with failure. Returns the best gain and
// leaves its state in `state`.
template <typename State, typename Propose, typename Gain>
double Climb(State& state, int steps, Propose propose, Gain gain) {
  double best = gain(state);
  double scale = 1;
  for (int i = 0; i < steps; ++i) {
    State tried = propose(state, scale);
    const double gained = gain(tried);
    if (gained > best) {
      best = gained;
      state = std::move(tried);
      scale = std::min(1., scale * 1.5);
    } else {
      scale = std::max(1e-3, scale * .97);
    }
  }
  return best;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_UNIT_PRIVACY_ADVERSARY_H_
