// What is drawn and said of convergence.
#include <cmath>

#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Convergence, DrawsScoresAndObjective) {
  const std::vector<Figure> figures =
      FiguresOf(MakeConvergenceExperiment(SmallStage()), SmallStudy());
  ASSERT_EQ(figures.size(), 2u);
  ExpectSound(figures[0]);
  EXPECT_THAT(NamesOf(figures[0].panels[0]), ElementsAre("epsilon 1", "without noise", "chance"));
  ExpectSound(figures[1]);
  const std::vector<FigurePoint>& objective = figures[1].panels[0].series[0].points;
  EXPECT_EQ(objective.size(), 15u);
  EXPECT_THAT(figures[1].words[3], HasSubstr(Short(objective[4].y) + " after iteration 5"));
  EXPECT_THAT(figures[1].words[4], HasSubstr("from the least to the greatest of 2 runs"));
}

// Two runs of 15 iterations: one falls by 2 in each, the other by 1 but for `rises`, by 1. Their
// mean falls in every iteration.
TEST(Convergence, SaysOfAnyRunWhetherItRose) {
  const Experiment experiment = MakeConvergenceExperiment(SmallStage());
  const auto sentence = [&](int rises) {
    std::vector<JobResult> results = PlantedResults(experiment, {});
    std::vector<double> falling = {100};
    std::vector<double> rising = {100};
    for (int i = 1; i < 15; ++i) {
      falling.push_back(falling.back() - 2);
      rising.push_back(rising.back() + (i <= rises ? 1 : -1));
    }
    results[results.size() - 2] = {{"as_defined", falling}, {"scaled", falling}};
    results[results.size() - 1] = {{"as_defined", falling}, {"scaled", rising}};
    const auto figures = experiment.draw(results);
    return figures.ok() ? figures->at(1).words[1] : std::string(figures.status().message());
  };
  EXPECT_THAT(sentence(0), HasSubstr("never rose in 28 iterations of 2 runs"));
  EXPECT_THAT(sentence(1), HasSubstr("is not monotone: it rose in 1 of 28 iterations of 2 runs"));
}

// The distance graph weighs with the labels' span: an iterate grows by a factor of about 1e14.
Study OverflowingStudy() {
  Study study = SmallStudy();
  study.settings.alpha = 1e9;
  study.settings.start_stddev = 1e10;
  for (int32_t& label : study.data.labels) label *= 100000;
  return study;
}

TEST(Convergence, EndsTheObjectiveWhereItIsNoNumber) {
  const Study study = OverflowingStudy();
  const std::vector<Figure> figures =
      FiguresOf(MakeConvergenceExperiment(std::make_shared<Stage>(study)), study);
  ASSERT_EQ(figures.size(), 2u);
  const std::vector<FigurePoint>& objective = figures[1].panels[0].series[0].points;
  ASSERT_LT(objective.size(), 15u);
  for (const FigurePoint& point : objective) EXPECT_TRUE(std::isfinite(point.y));
  EXPECT_THAT(Joined(figures[1].words),
              HasSubstr("After iteration " + std::to_string(objective.size()) +
                        " the objective of a run is no finite number"));
}

}  // namespace
}  // namespace privatemail::client
