#include "client/evaluation/experiments/cell_designs.h"

#include "client/evaluation/cell_trial.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using testing::HasSubstr;
using testing::Not;

// 20 clouds of 60 rows.
Study CloudStudy() {
  Study study = SmallStudy();
  study.data = Clouds(20, 80, 8, 1);
  study.sizes = {.anchors_per_class = 5, .targets = 100, .gallery_per_class = 60};
  return study;
}

TEST(CellDesigns, AreDrawnBesideWhatIsBuilt) {
  Study study = CloudStudy();
  study.cells = CellsAsked{.cells = 10, .overlap = 2, .ask = 3, .focus = 2};
  const std::vector<Figure> figures =
      FiguresOf(MakeCellDesignsExperiment(std::make_shared<Stage>(study)), study);
  ASSERT_EQ(figures.size(), 3u);
  for (const Figure& figure : figures) {
    ExpectSound(figure);
    EXPECT_THAT(NamesOf(figure.panels[0]),
                testing::UnorderedElementsAre(
                    "as built", "drawn to 2, 4 or 8 cells", "graded by rank",
                    "several cells, items in the nearest 1, 3 or 6", "cells of equal size",
                    "cells in the papers' embedding", "cells of discriminants",
                    "3 of 10 cells, drawn to 2, overlap 2", "features, not private"));
  }
  ASSERT_EQ(figures[2].id, "cell-designs-fidelity");
  const FigurePanel& fidelity = figures[2].panels[0];
  for (const FigureSeries& design : fidelity.series) {
    if (design.points.size() < 4) continue;  // not private
    EXPECT_GT(design.points[3].y, design.points[0].y) << design.name;
  }
  EXPECT_GT(SeriesNamed(fidelity, "as built").points[3].y,
            SeriesNamed(fidelity, "graded by rank").points[3].y);
}

std::string Words(const std::map<std::string, double>& fidelity) {
  const Study study = CloudStudy();
  const Experiment experiment = MakeCellDesignsExperiment(std::make_shared<Stage>(study));
  std::vector<JobResult> results = PlantedResults(experiment, fidelity);
  // Not all the same difference, which would have no width.
  for (size_t job = 0; job < results.size(); job += 2) {
    for (double& score : results[job]["fidelity"]) score += .001 * static_cast<double>(job % 3);
  }
  const auto figures = experiment.draw(results);
  return figures.ok() ? Joined(figures->at(2).words) : std::string(figures.status().message());
}

TEST(CellDesigns, AreToldFromWhatIsBuiltWhereTheyDiffer) {
  const std::string words =
      Words({{"as built", .5}, {"graded by rank", .3}, {"cells of equal size", .7}});
  EXPECT_THAT(words, testing::ContainsRegex("\"graded by rank\": [^:]*, shown to be less"));
  EXPECT_THAT(words, testing::ContainsRegex("\"cells of equal size\": [^:]*, shown to be more"));
  EXPECT_THAT(words, Not(testing::ContainsRegex("\"graded by rank\": [^:]*shown to be more")));
  EXPECT_THAT(words, HasSubstr("As built, fidelity@4 at epsilon 1, 2, 4 and 8 is 0.5"));
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// What a target finds, as a mean over twenty choices, has a deviation of about .2: of 300 targets
// and as many known items .015 together; five times as much may be chance.
TEST(CellDesigns, ExpectWhatTheyThenFind) {
  const CellDesign two{.focuses = {2}}, graded{.graded = true};
  const CellDesign several{.overlaps = {2}, .focuses = {2}};
  for (const CellDesign& design : {two, graded, several}) {
    double excess = 0;
    for (const uint64_t seed : {1, 2, 3}) {
      const CellTrial trial(*MakeTrial(CloudStudy(), seed), CellTrial::Kind::kOfAnchors);
      ASSERT_OK_AND_ASSIGN(CellPlan plan, trial.PlanFor(3, .1, design));
      EXPECT_EQ(plan.length, 120);
      EXPECT_EQ(plan.focus, design.focuses[0]);
      EXPECT_EQ(plan.overlap, design.overlaps[0]);
      EXPECT_EQ(plan.graded, design.graded);
      plan.length = 1200;  // of several cells: without what is cut off
      if (design.overlaps[0] == 0) plan.length = 120;
      for (int choice = 0; choice < 20; ++choice) {
        ASSERT_OK_AND_ASSIGN(const Answers answers, trial.AskAll(plan, 3, std::to_string(choice)));
        excess += (Mean(answers.fidelity) - plan.expected_fidelity) / 60;
      }
    }
    EXPECT_NEAR(excess, 0, 5 * .015) << design.overlaps[0] << " " << design.graded;
  }
}

TEST(CellDesigns, TakeTheBestOfWhatTheyLeaveOpen) {
  const CellTrial trial(*MakeTrial(CloudStudy(), 1), CellTrial::Kind::kOfAnchors);
  double best = 0;
  for (const int64_t focus : {6, 3, 1}) {
    ASSERT_OK_AND_ASSIGN(const CellPlan plan, trial.PlanFor(1, .1, {.focuses = {focus}}));
    best = std::max(best, plan.expected_fidelity);
  }
  ASSERT_OK_AND_ASSIGN(const CellPlan plan, trial.PlanFor(1, .1, {.focuses = {6, 3, 1}}));
  EXPECT_EQ(plan.expected_fidelity, best);
}

TEST(CellDesigns, SayWhereTheShareIsNotEvenOneCell) {
  const CellTrial trial(*MakeTrial(CloudStudy(), 1), CellTrial::Kind::kOfAnchors);
  EXPECT_THAT(trial.PlanFor(2, .001, {.overlaps = {3}, .focuses = {1}}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "too few rows for cells"));
}

TEST(CellDesigns, ThatCannotBeMadeAreToldAndTheOthersDrawn) {
  Study few = SmallStudy();
  few.data = Clouds(4, 20, 8, 1);  // 16 anchors, for 3 cells: each has more than a tenth
  const std::vector<Figure> figures =
      FiguresOf(MakeCellDesignsExperiment(std::make_shared<Stage>(few)), few);
  ASSERT_EQ(figures.size(), 3u);
  EXPECT_THAT(Joined(figures[2].words), HasSubstr("too few rows for cells"));
  EXPECT_EQ(SeriesNamed(figures[2].panels[0], "as built").points.size(), 4u);
}

TEST(CellDesigns, ThatAreGivenMustBeThere) {
  Study study = CloudStudy();
  const auto refused = [&](const CellsAsked& asked) {
    study.cells = asked;
    return Validate(study);
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(refused({.cells = 10, .overlap = 10, .ask = 9, .focus = 9}), IsOk());
  EXPECT_THAT(refused({.cells = 1}), FailsWith(kInvalid, "--cells must be between 2 and 100"));
  EXPECT_THAT(refused({.cells = 101}), FailsWith(kInvalid, "--cells"));
  EXPECT_THAT(refused({.cells = 10, .overlap = 11}), FailsWith(kInvalid, "--overlap"));
  EXPECT_THAT(refused({.cells = 10, .ask = 10}), FailsWith(kInvalid, "--ask"));
  EXPECT_THAT(refused({.cells = 10, .focus = 0}), FailsWith(kInvalid, "--focus"));
}

}  // namespace
}  // namespace privatemail::client
