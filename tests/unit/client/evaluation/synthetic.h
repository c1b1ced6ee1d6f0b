// Data that an experiment takes a moment for.
#ifndef PRIVATEMAIL_TESTS_UNIT_CLIENT_EVALUATION_SYNTHETIC_H_
#define PRIVATEMAIL_TESTS_UNIT_CLIENT_EVALUATION_SYNTHETIC_H_

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "client/evaluation/runner.h"
#include "client/evaluation/scene.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {

// Clouds around random directions, one a class.
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

// 20 classes with the alpha that `collection create` takes for 20, and few of everything.
inline Study SmallStudy() {
  Study study;
  study.data = Clouds(20, 20, 8, 1);
  study.sizes = {.anchors_per_class = 4, .targets = 20, .gallery_per_class = 12};
  study.k = 4;
  study.seeds = 2;
  study.epsilons = {.1, 10};
  study.settings.alpha = 3;
  study.settings.steps = 8;
  return study;
}

inline std::shared_ptr<Stage> SmallStage() { return std::make_shared<Stage>(SmallStudy()); }

inline std::vector<Figure> FiguresOf(const Experiment& experiment, const Study& study) {
  const TemporaryFolder folder;
  const auto figures =
      RunExperiments({experiment}, {.folder = folder.path(), .study = Describe(study)});
  EXPECT_THAT(figures, IsOk());
  return figures.value_or(std::vector<Figure>());
}

// Results as an experiment might have had them: every score of a target is that of its job, by what
// the job's key begins with.
inline std::vector<JobResult> PlantedResults(const Experiment& experiment,
                                             const std::map<std::string, double>& scores) {
  std::vector<JobResult> results;
  for (const Job& job : experiment.jobs) {
    const auto found = std::find_if(scores.begin(), scores.end(), [&](const auto& one) {
      return job.key.rfind(one.first, 0) == 0;
    });
    // Splits differ in all conditions alike.
    const double score = (found == scores.end() ? .5 : found->second) +
                         (job.key.find("seed 2") != std::string::npos ? .01 : 0);
    const std::vector<double> all(20, score);
    results.push_back({{"class_share", all}, {"hit", all}, {"fidelity", all}, {"unanswered", {0}}});
  }
  return results;
}

inline const FigureSeries& SeriesNamed(const FigurePanel& panel, const std::string& name) {
  static const FigureSeries none;
  for (const FigureSeries& series : panel.series) {
    if (series.name == name) return series;
  }
  ADD_FAILURE() << "no series " << name << " in " << panel.title;
  return none;
}

inline std::vector<std::string> NamesOf(const FigurePanel& panel) {
  std::vector<std::string> names;
  for (const FigureSeries& series : panel.series) names.push_back(series.name);
  return names;
}

inline std::string Joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& sentence : words) all += sentence + "\n";
  return all;
}

// Whether bands, where there are any, hold their points, and ids can be file names.
inline void ExpectSound(const Figure& figure) {
  EXPECT_TRUE(std::all_of(figure.id.begin(), figure.id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  })) << figure.id;
  EXPECT_FALSE(figure.title.empty());
  EXPECT_FALSE(figure.words.empty());
  ASSERT_FALSE(figure.panels.empty());
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      EXPECT_FALSE(series.points.empty()) << series.name;
      for (const FigurePoint& point : series.points) {
        EXPECT_TRUE(std::isfinite(point.x) && std::isfinite(point.y)) << series.name;
        if (std::isnan(point.low)) continue;
        EXPECT_LE(point.low, point.y + 1e-12) << series.name;
        EXPECT_GE(point.high, point.y - 1e-12) << series.name;
      }
    }
  }
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_UNIT_CLIENT_EVALUATION_SYNTHETIC_H_
