// What the ablation draws and says, and what figures say of answers that are missing.
#include <algorithm>
#include <cmath>
#include <map>

#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

TEST(Ablation, TellsWhatTheLabelAloneGives) {
  const std::vector<Figure> figures = FiguresOf(MakeAblationExperiment(SmallStage()), SmallStudy());
  ASSERT_EQ(figures.size(), 1u);
  const Figure& figure = figures[0];
  ExpectSound(figure);
  EXPECT_THAT(
      figure.x.categories,
      IsSupersetOf({"as it is", "random feature", "wrong label", "without slots",
                    "label graph kernel with alpha 0.6", "label graph one-hot with alpha 0.6",
                    "kernel over s", "kernel over s^2"}));
  const FigureSeries& bars = SeriesNamed(figure.panels[0], "epsilon 1");
  ASSERT_EQ(bars.points.size(), figure.x.categories.size());
  // The scheme finds classes by their labels: without the feature it finds them, with a wrong label
  // it does not.
  EXPECT_GT(bars.points[0].y, .8);
  EXPECT_GT(bars.points[1].y, .8);
  EXPECT_LT(bars.points[2].y, .3);
  const double share =
      (bars.points[1].y - bars.points[2].y) / (bars.points[0].y - bars.points[2].y);
  // Of the fidelity it gives nothing that could be told apart from chance.
  EXPECT_THAT(figure.words[0],
              StartsWith("The label alone gives " + Short(share) +
                         " (the same each time, so that there is no interval) of what recall@4"));
  EXPECT_THAT(figure.words[2],
              StartsWith("What the label alone gives of fidelity@4 cannot be said from"));
}

// Over s^2, unit vectors that point away from each other have an affinity so small at this
// bandwidth that noise which hides everything fits no float.
TEST(Ablation, DropsAKernelWithWhichNothingCanBeProven) {
  Study study = SmallStudy();
  study.settings.kernel_bandwidth = .2;
  const std::vector<Figure> figures =
      FiguresOf(MakeAblationExperiment(std::make_shared<Stage>(study)), study);
  ASSERT_EQ(figures.size(), 1u);
  const std::string words = Joined(figures[0].words);
  EXPECT_THAT(words, HasSubstr("Not measured: \"kernel over s^2\" at 1 (values of up to"));
  EXPECT_THAT(words, HasSubstr("With kernel over s^2, recall@4 is not known instead of "));
  const FigurePanel& panel = figures[0].panels[0];
  const auto& categories = figures[0].x.categories;
  const auto bar = static_cast<size_t>(
      std::find(categories.begin(), categories.end(), "kernel over s^2") - categories.begin());
  ASSERT_LT(bar, categories.size());
  EXPECT_TRUE(std::isnan(SeriesNamed(panel, "epsilon 1").points[bar].y));
  EXPECT_FALSE(std::isnan(SeriesNamed(panel, "without noise").points[bar].y));
  EXPECT_FALSE(std::isnan(SeriesNamed(panel, "epsilon 1").points[0].y));
}

TEST(Ablation, DoesNotTakeChanceForTheLabels) {
  const Experiment experiment = MakeAblationExperiment(SmallStage());
  const auto words = [&](double as_it_is, double random, double wrong) {
    const auto figures = experiment.draw(PlantedResults(
        experiment,
        {{"as it is at", as_it_is}, {"random feature at", random}, {"wrong label at", wrong}}));
    return figures.ok() ? figures->at(0).words[0] : std::string(figures.status().message());
  };
  EXPECT_THAT(
      words(.9, .5, .1),
      StartsWith(
          "The label alone gives 0.5 (the same each time, so that there is no interval) of what"));
  EXPECT_THAT(words(.9, .1, .1), StartsWith("The label alone gives 0 (the same each time"));
  EXPECT_THAT(words(.1, .1, .1), StartsWith("What the label alone gives of recall@4 cannot be"));
}

TEST(Notes, CountWhatWasNotAnsweredByCondition) {
  const Experiment experiment = MakeAblationExperiment(SmallStage());
  std::vector<JobResult> results = PlantedResults(experiment, {});
  for (size_t i = 0; i < results.size(); ++i) {
    if (experiment.jobs[i].key.rfind("wrong label", 0) == 0) results[i]["unanswered"] = {20};
    if (experiment.jobs[i].key.rfind("random feature at 1, seed 1", 0) == 0) {
      results[i]["unanswered"] = {3};
    }
    if (experiment.jobs[i].key.rfind("kernel over s^2", 0) == 0) {
      results[i]["unanswered"] = {20};
      results[i]["not_built"] = {1};
    }
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Figure> figures, experiment.draw(results));
  const std::string words = Joined(figures[0].words);
  // With and without noise, 2 splits of 20 targets.
  EXPECT_THAT(words, HasSubstr("finding nothing: 3 of 80 of \"random feature\", 80 of 80 of "
                               "\"wrong label\"."));
  EXPECT_THAT(words, HasSubstr("out of 4 settings and splits each, these are 4 of \"kernel over "
                               "s^2\"."));
  ASSERT_OK_AND_ASSIGN(const std::vector<Figure> all_answered,
                       experiment.draw(PlantedResults(experiment, {})));
  EXPECT_THAT(Joined(all_answered[0].words), Not(HasSubstr("finding nothing")));
  EXPECT_THAT(Joined(all_answered[0].words), Not(HasSubstr("refuses")));
}

}  // namespace
}  // namespace privatemail::client
