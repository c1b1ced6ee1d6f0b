// Data that a simulation takes a moment for.
#ifndef PRIVATEMAIL_TESTS_UNIT_CLIENT_SIMULATION_CLOUDS_H_
#define PRIVATEMAIL_TESTS_UNIT_CLIENT_SIMULATION_CLOUDS_H_

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "client/simulation/trial.h"
#include "tests/testing/matchers.h"

namespace privatemail::client::simulation {

// Unit rows in clouds around random directions, one a class.
inline LabelledRows Clouds(int classes, int each, int dim, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  const Matrix centres = Matrix::NullaryExpr(classes, dim, [&] { return normal(bits); });
  LabelledRows data;
  data.features.resize(classes * each, dim);
  for (int i = 0; i < classes * each; ++i) {
    for (int j = 0; j < dim; ++j) {
      data.features(i, j) = centres(i % classes, j) + .5 * normal(bits);
    }
    data.features.row(i).normalize();
    data.labels.push_back(i % classes);
  }
  return data;
}

// Rows of clouds are in no order but their classes': of each class the first are anchors, the next
// targets, the rest the gallery.
inline Split SplitOf(const LabelledRows& data, int anchors_each, int targets_each) {
  const int classes = *std::max_element(data.labels.begin(), data.labels.end()) + 1;
  const auto rows = [&](int first, int end) {
    return LabelledRows{
        data.features.middleRows(first, end - first),
        std::vector<int32_t>(data.labels.begin() + first, data.labels.begin() + end)};
  };
  const int targets = classes * anchors_each, gallery = targets + classes * targets_each;
  return {rows(0, targets), rows(gallery, static_cast<int>(data.labels.size())),
          rows(targets, gallery)};
}

inline EmbeddingSettings SmallSettings(double alpha = 3, double bandwidth = 6) {
  EmbeddingSettings settings;
  settings.alpha = alpha;
  settings.kernel_bandwidth = bandwidth;
  settings.steps = 8;
  return settings;
}

// 20 classes with 4 anchors, a target and 15 items each; k 4.
inline std::shared_ptr<const Trial> SmallTrial(int dim = 8, unsigned seed = 1) {
  return *Trial::Create(SplitOf(Clouds(20, 20, dim, seed), 4, 1), 4, 1);
}

}  // namespace privatemail::client::simulation

#endif  // PRIVATEMAIL_TESTS_UNIT_CLIENT_SIMULATION_CLOUDS_H_
