// The experiments of client/evaluation/experiments/settings.cc: one setting at a time, and tuning.
#include <map>
#include <set>

#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Settings, AreTurnedOneAtATime) {
  const std::vector<Figure> figures = FiguresOf(MakeSettingsExperiment(SmallStage()), SmallStudy());
  ASSERT_EQ(figures.size(), 3u);
  for (const Figure& figure : figures) {
    ExpectSound(figure);
    EXPECT_THAT(NamesOf(figure.panels[0]), ElementsAre("epsilon 1", "without noise"));
    FigurePoint most;
    for (const FigurePoint& point : figure.panels[0].series[0].points) {
      if (point.y > most.y) most = point;
    }
    EXPECT_THAT(figure.words[0], HasSubstr(" and " + WithBand(BandAt(most)) + " at "));
  }
}

// One value is far from the others in either split, by not quite the same; another has the greatest
// mean and the widest band, and is not shown to differ from any.
TEST(Settings, SayBetweenWhichValuesScoresAreShownToDiffer) {
  const Experiment experiment = MakeSettingsExperiment(SmallStage());
  const auto words = [&](const std::map<std::string, double>& scores) {
    const auto figures = experiment.draw(PlantedResults(experiment, scores));
    return figures.ok() ? figures->at(0).words[0] : std::string(figures.status().message());
  };
  EXPECT_THAT(words({}), HasSubstr("No two of the 5 values are shown to differ (paired t over the "
                                   "splits, 5 % over all pairs together)."));
  EXPECT_THAT(words({{"dim: epsilon 1 at 4, seed 1", .2},
                     {"dim: epsilon 1 at 4, seed 2", .1999},
                     {"dim: epsilon 1 at 6, seed 1", .4},
                     {"dim: epsilon 1 at 6, seed 2", .95}}),
              HasSubstr("3 of the 10 pairs of values are shown to differ"));
}

// Factors of 0 are all 0, which no logarithmic axis has.
TEST(Settings, TurnAnAlphaOfZeroByWhatIsUsual) {
  Study study = SmallStudy();
  study.settings.alpha = 0;
  const std::vector<Figure> figures =
      FiguresOf(MakeSettingsExperiment(std::make_shared<Stage>(study)), study);
  ASSERT_EQ(figures.size(), 3u);
  EXPECT_EQ(figures[1].id, "settings-alpha");
  EXPECT_FALSE(figures[1].x.logarithmic);
  std::vector<double> alphas;
  for (const FigurePoint& point : figures[1].panels[0].series[0].points) alphas.push_back(point.x);
  EXPECT_THAT(alphas, ElementsAre(0, .75, 1.5, 3, 6, 12));  // 60 / 20 classes is usual
}

TEST(Tune, RanksAGridOnAnchorsAlone) {
  Study study = SmallStudy();
  study.seeds = 1;
  ASSERT_OK_AND_ASSIGN(study, TuningStudy(study));
  EXPECT_EQ(study.sizes.anchors_per_class, 8);  // two fifths of 20
  const std::vector<Figure> figures =
      FiguresOf(MakeTuneExperiment(std::make_shared<Stage>(study)), study);
  ASSERT_EQ(figures.size(), 1u);
  ExpectSound(figures[0]);
  const FigureSeries& precision = SeriesNamed(figures[0].panels[0], "precision@4");
  EXPECT_EQ(precision.points.size(), 10u);
  for (size_t i = 1; i < 10; ++i) {
    EXPECT_LE(precision.points[i].y, precision.points[i - 1].y + .01);
  }
  EXPECT_THAT(figures[0].words[0], HasSubstr(figures[0].x.categories[0]));
  EXPECT_THAT(figures[0].words[1], StartsWith("On 1 fresh splits, which deal the same rows"));
  EXPECT_THAT(figures[0].words[3], StartsWith("Of every class 8 rows were anchors here."));
}

// A cached result must not depend on the rest of the grid.
TEST(Tune, KeysItsJobsBySettings) {
  Study study = SmallStudy();
  study.seeds = 1;
  study.settings.alpha = 1. / 3;
  const Experiment experiment = MakeTuneExperiment(std::make_shared<Stage>(study));
  std::set<std::string> keys;
  for (const Job& job : experiment.jobs) keys.insert(job.key);
  EXPECT_EQ(keys.size(), 54u);
  EXPECT_THAT(keys, Contains("--dim 4 --alpha 0.3333333333333333 --bandwidth 3 --steps 10 "
                             "--label-graph distance --start random, seed 1"));
}

TEST(Tune, ScoresItsBestOnSplitsThatChoseNothing) {
  Study study = SmallStudy();
  study.seeds = 2;
  ASSERT_OK_AND_ASSIGN(study, TuningStudy(study));
  const auto stage = std::make_shared<Stage>(study);
  const Experiment experiment = MakeTuneExperiment(stage);
  const auto targets = static_cast<size_t>(study.sizes.targets);
  // .299 and .301 are as good as each other, .32 is better than both.
  const auto result = [&](double precision, double fidelity) {
    return JobResult{{"class_share", std::vector<double>(targets, precision)},
                     {"fidelity", std::vector<double>(targets, fidelity)},
                     {"hit", std::vector<double>(targets, 1)},
                     {"unanswered", {0}}};
  };
  std::vector<JobResult> results;
  for (size_t c = 0; c < 54; ++c) {
    for (int seed = 0; seed < 2; ++seed) {
      results.push_back(c == 7    ? result(.2999, .4)
                        : c == 20 ? result(.3001, .3)
                        : c == 30 ? result(.32, .1)
                                  : result(.1, .9));
    }
  }
  results[2 * 53].refused = "no noise";
  ASSERT_OK_AND_ASSIGN(const std::vector<Figure> figures, experiment.draw(results));
  const auto flags = [&](size_t c) {
    const std::string& key = experiment.jobs[2 * c].key;
    return key.substr(0, key.find(','));
  };
  const std::vector<std::string>& ranked = figures.at(0).x.categories;
  ASSERT_EQ(ranked.size(), 10u);
  EXPECT_EQ(ranked[0], flags(30));
  EXPECT_EQ(ranked[1], flags(7));
  EXPECT_EQ(ranked[2], flags(20));
  // Splits 3 and 4 are asked as a study of four splits would ask them.
  study.seeds = 4;
  const Experiment longer = MakeTuneExperiment(std::make_shared<Stage>(study));
  std::vector<std::vector<double>> fresh;
  for (const size_t job : {4 * 30 + 2, 4 * 30 + 3}) {
    ASSERT_OK_AND_ASSIGN(const JobResult asked, longer.jobs[job].run());
    fresh.push_back(asked.at("class_share"));
  }
  EXPECT_THAT(figures[0].words[1],
              StartsWith("On 2 fresh splits, which deal the same rows anew, its precision@4 is " +
                         Short(BandOfScores(fresh, 1).mean) + " "));
  EXPECT_THAT(Joined(figures[0].words), HasSubstr("Not measured: \"" + flags(53)));
}

TEST(Tune, NeedsFourAnchorsOfEveryClass) {
  Study study = SmallStudy();
  study.data = Clouds(3, 3, 4, 1);
  EXPECT_THAT(TuningStudy(study), FailsWith(absl::StatusCode::kInvalidArgument, "class 0 has 3"));
}

}  // namespace
}  // namespace privatemail::client
