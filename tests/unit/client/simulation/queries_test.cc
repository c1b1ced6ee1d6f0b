#include "client/simulation/queries.h"

#include "tests/unit/client/simulation/clouds.h"

namespace privatemail::client::simulation {
namespace {

// The mean share of the nearest k that came back.
double Fidelity(const std::vector<std::vector<int64_t>>& found, const Trial& trial) {
  double sum = 0;
  for (size_t target = 0; target < found.size(); ++target) {
    const std::vector<int64_t>& nearest = trial.nearest()[target];
    for (const int64_t row : found[target]) {
      sum += std::count(nearest.begin(), nearest.end(), row);
    }
  }
  return sum / static_cast<double>(found.size()) / static_cast<double>(trial.k());
}

class CellTrialTest : public ::testing::Test {
 protected:
  double FidelityOf(const CellPlan& plan, double epsilon) const {
    const auto found = cells_.QueryAll(plan, epsilon, "test");
    EXPECT_THAT(found, IsOk());
    return found.ok() ? Fidelity(*found, *trial_) : 0;
  }

  const std::shared_ptr<const Trial> trial_ =
      *Trial::Create(SplitOf(Clouds(20, 75, 8, 1), 5, 10), 4, 1);
  const CellTrial cells_{*trial_};
};

TEST_F(CellTrialTest, LittlePrivacyFindsNearlyAllAndTheWholeGalleryFindsAll) {
  EXPECT_GT(FidelityOf(*cells_.PlanFor(12, .1), 12), .8);
  EXPECT_EQ(FidelityOf({.cells = 4, .length = 1200}, .1), 1);
}

// Noise in many directions: lists that were made of an item find much more of its neighbours than
// others', so that a plan must not be tried on such items.
TEST(CellPlan, IsTriedOnItemsThatItsListsDoNotKnow) {
  double excess = 0;
  for (const unsigned seed : {1, 2, 3}) {
    const auto trial = *Trial::Create(SplitOf(Clouds(2, 800, 40, seed), 100, 200), 4, seed);
    const CellTrial cells(*trial);
    ASSERT_OK_AND_ASSIGN(const CellPlan plan, cells.PlanFor(6, .1));
    for (int choice = 0; choice < 4; ++choice) {
      ASSERT_OK_AND_ASSIGN(const auto found, cells.QueryAll(plan, 6, std::to_string(choice)));
      excess += (Fidelity(found, *trial) - plan.expected_fidelity) / 12;
    }
  }
  EXPECT_NEAR(excess, 0, .03);
}

TEST(QueryAll, WrongLabelFindsFewOfTheClassAndRandomFeatureMore) {
  const auto trial = SmallTrial();
  ASSERT_OK_AND_ASSIGN(const auto scene, trial->SceneOf(SmallSettings()));
  const auto of_class = [&](const QueryConfig& config) {
    const auto answers = QueryAll(*scene, config);
    EXPECT_THAT(answers, IsOk());
    double share = 0;
    for (size_t target = 0; target < answers->rows.size(); ++target) {
      for (const int64_t row : answers->rows[target]) {
        share += trial->split().gallery.labels[static_cast<size_t>(row)] ==
                         trial->split().targets.labels[target]
                     ? 1. / 80
                     : 0;
      }
    }
    return share;
  };
  const double own = of_class({});
  const double wrong = of_class({.label = QueryConfig::Label::kWrong});
  EXPECT_GT(own, .5);
  EXPECT_LT(wrong, .2);
  EXPECT_GT(of_class({.feature = QueryConfig::Feature::kRandom}), wrong + .2);
  // Draws are seeded by trial and target alone.
  const PrivacyCost cost{.epsilon = 1, .delta = 1e-5};
  EXPECT_EQ(QueryAll(*scene, {.cost = cost})->rows, QueryAll(*scene, {.cost = cost})->rows);
}

}  // namespace
}  // namespace privatemail::client::simulation
