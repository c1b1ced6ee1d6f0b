// The cells scheme on small data: what it finds, what it keeps from knowing, what it predicts.
#include <cmath>

#include "client/evaluation/asking.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/evaluation/sweep.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// 20 clouds of 60 rows.
Study CloudStudy() {
  Study study = SmallStudy();
  study.data = Clouds(20, 80, 8, 1);
  study.sizes = {.anchors_per_class = 5, .targets = 200, .gallery_per_class = 60};
  return study;
}

class CellTrialTest : public testing::Test {
 protected:
  CellTrialTest() : trial_(*MakeTrial(CloudStudy(), 1)) {}

  double FidelityOf(const CellPlan& plan, double epsilon) const {
    const auto answers = trial_.AskAll(plan, epsilon, "test");
    EXPECT_THAT(answers, IsOk());
    return answers.ok() ? Mean(answers->fidelity) : 0;
  }

  const CellTrial trial_;
};

TEST_F(CellTrialTest, FindsNearlyAllWithHardlyAnyPrivacyAndTheWholeGalleryFindsAll) {
  EXPECT_GT(FidelityOf(*trial_.PlanFor(12, .1), 12), .8);
  EXPECT_EQ(FidelityOf({.cells = 4, .length = 1200}, .1), 1);
}

TEST_F(CellTrialTest, HasMoreCellsTheLessIsHidden) {
  EXPECT_LT(trial_.PlanFor(.5, .1)->cells, trial_.PlanFor(8, .1)->cells);
}

// Noise in many directions: lists that were made of an item find much more of its neighbours than
// others', which is what a plan must not be tried on.
TEST(CellTrialPlan, IsTriedOnItemsThatItsListsDoNotKnow) {
  Study study = SmallStudy();
  study.data = Clouds(2, 800, 40, 1);
  study.sizes = {.anchors_per_class = 100, .targets = 400, .gallery_per_class = 500};
  double excess = 0;
  for (const uint64_t seed : {1, 2, 3}) {
    const CellTrial trial(*MakeTrial(study, seed));
    ASSERT_OK_AND_ASSIGN(const CellPlan plan, trial.PlanFor(6, .1));
    for (int choice = 0; choice < 4; ++choice) {
      ASSERT_OK_AND_ASSIGN(const Answers answers, trial.AskAll(plan, 6, std::to_string(choice)));
      for (const double found : answers.fidelity) {
        excess += (found - plan.expected_fidelity) / (12. * 400);
      }
    }
  }
  EXPECT_NEAR(excess, 0, .03);
}

TEST(Cells, AreDrawnBesideTheirCeilingsAndToldInWords) {
  const Study study = CloudStudy();
  const std::vector<Figure> figures =
      FiguresOf(MakeCellsExperiment(std::make_shared<Stage>(study), {}), study);
  ASSERT_EQ(figures.size(), 3u);
  for (const Figure& figure : figures) {
    ExpectSound(figure);
    EXPECT_THAT(NamesOf(figure.panels[0]),
                IsSupersetOf({"cells, 10 % returned", "cells, 1 % returned",
                              "features, not private", "chance"}));
    EXPECT_THAT(
        NamesOf(figure.panels[1]),
        testing::UnorderedElementsAre("PrivateMail, gaussian", "PrivateMail anchored, gaussian",
                                      "features, not private", "chance"));
  }
  const Figure& fidelity = figures[2];
  ASSERT_EQ(fidelity.id, "cells-fidelity");
  const FigureSeries& ceiling = SeriesNamed(fidelity.panels[0], "ceiling at 10 %");
  ASSERT_GT(ceiling.points.size(), 40u) << "a curve, and not lines between bars";
  EXPECT_NEAR(ceiling.points.front().x, .5, 1e-12);
  EXPECT_NEAR(ceiling.points.back().x, 8, 1e-12);
  for (const FigurePoint& point : ceiling.points) {
    EXPECT_NEAR(point.y, .1 * std::exp(point.x) / (1 + .1 * (std::exp(point.x) - 1)), 1e-12);
  }
  const FigureSeries& cells = SeriesNamed(fidelity.panels[0], "cells, 10 % returned");
  EXPECT_THAT(fidelity.words[0],
              HasSubstr("With cells, 10 % returned, fidelity@4 is " + Short(cells.points[1].y)));
  EXPECT_GT(cells.points[4].y, cells.points[0].y);
  // Of the own cell, at epsilon 8, nearly all come back; a release on coordinates finds the class.
  EXPECT_GT(cells.points[4].y,
            SeriesNamed(fidelity.panels[1], "PrivateMail, gaussian").points[4].y);
}

// All cells find the same share of what is nearest, at every epsilon.
std::string WordsWithFidelity(double fidelity) {
  const Study study = CloudStudy();
  const Experiment experiment = MakeCellsExperiment(std::make_shared<Stage>(study), {});
  std::vector<JobResult> results;
  for (size_t i = 0; i < experiment.jobs.size(); ++i) {
    // Bands of no width: every target of every split finds as much.
    const std::vector<double> all(200, fidelity);
    results.push_back({{"class_share", all}, {"hit", all}, {"fidelity", all}, {"unanswered", {0}}});
  }
  const auto figures = experiment.draw(results);
  return figures.ok() ? Joined(figures->at(2).words) : std::string(figures.status().message());
}

// Ceilings of a tenth: f e^epsilon / (1 + f (e^epsilon - 1)) is .15, .23, .45, .86 and .997 at .5,
// 1, 2, 4 and 8, of a hundredth .02, .03, .07, .36 and .97.
TEST(Cells, TellWhereABandIsAboveTheCeilingAndNowhereElse) {
  const std::string some = WordsWithFidelity(.3);
  EXPECT_THAT(some, HasSubstr("band of \"cells, 10 % returned\" lies above that ceiling at "
                              "epsilon 0.5, 1."));
  EXPECT_THAT(some, HasSubstr("band of \"cells, 1 % returned\" lies above that ceiling at "
                              "epsilon 0.5, 1, 2."));
  EXPECT_THAT(WordsWithFidelity(.005), Not(HasSubstr("lies above")));
}

}  // namespace
}  // namespace privatemail::client
