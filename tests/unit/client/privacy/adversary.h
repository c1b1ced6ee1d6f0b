// Search for counterexamples to sensitivity bounds: random inputs, and ascent on their ratio.
#ifndef PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_ADVERSARY_H_
#define PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_ADVERSARY_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "client/privacy/sensitivity/sensitivity.h"
#include "common/embedding/smlq.h"
#include "common/embedding/tiled_affinity.h"

namespace privatemail::client {

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

// Public inputs of an iteration, and the production iteration on them. Labels cycle through slots.
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

  // Difference between neighbours. rows: n rows, then the replacements of the first slots' rows.
  Matrix Move(const Matrix& rows) const {
    const Matrix one = rows.topRows(start.rows());
    const Eigen::Index changed = rows.rows() - start.rows();
    Matrix two = one;
    two.topRows(changed) = rows.bottomRows(changed);
    return Iterate(one) - Iterate(two);
  }

  // The anchors of such rows.
  Matrix AnchorsOf(const Matrix& rows) const {
    return rows.middleRows(slots, start.rows() - slots);
  }

 private:
  static std::vector<int32_t> Labels(Eigen::Index n, int64_t slots) {
    std::vector<int32_t> labels;
    for (Eigen::Index i = 0; i < n; ++i) labels.push_back(static_cast<int32_t>(i % slots));
    return labels;
  }
};

// Random ascent on gain(state): tries `steps` proposals propose(best, scale), whose scale grows
// with success and shrinks with failure. Returns the best gain and leaves its state in `state`.
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

// State of an ascent over all inputs of a bound: unit rows, each with its start beside it, whose
// scale does not matter. (Replacement rows ignore their start.)
struct Cloud {
  static constexpr Eigen::Index kDim = 3;
  static constexpr Eigen::Index kColumns = 2;

  static Matrix Random(Adversary& adversary, Eigen::Index rows) {
    return Normalised(adversary.Normal(rows, kDim + kColumns));
  }
  static Matrix Normalised(Matrix state) {
    state.leftCols(kDim).rowwise().normalize();
    state.rightCols(kColumns).normalize();
    return state;
  }
  static Matrix RowsOf(const Matrix& state) { return state.leftCols(kDim); }
  static Matrix StartOf(const Matrix& state, Eigen::Index n) {
    return state.topRightCorner(n, kColumns);
  }
};

// Gradient ascent on gain(state), by forward differences over every entry; project(state) maps to
// the feasible set. The step grows with success and is halved at failure. Stops at a small step or
// after `gradients` gradients. Returns the best gain and leaves its state in `state`.
template <typename Project, typename Gain>
double Ascend(Matrix& state, int gradients, Project project, Gain gain) {
  constexpr double kDifference = 1e-6;
  double best = gain(state);
  double step = .3;
  for (int i = 0; i < gradients && step > 1e-4; ++i) {
    Matrix uphill = state;
    for (Eigen::Index j = 0; j < state.size(); ++j) {
      Matrix beside = state;
      beside.data()[j] += kDifference;
      uphill.data()[j] = gain(project(std::move(beside))) - best;
    }
    uphill.normalize();
    for (double gained = best; gained <= best && step > 1e-4;) {
      Matrix tried = project(state + step * uphill);
      gained = gain(tried);
      if (gained > best) {
        state = std::move(tried);
        step = std::min(1., 2 * step);
      } else {
        step /= 2;
      }
    }
    best = gain(state);
  }
  return best;
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_ADVERSARY_H_
