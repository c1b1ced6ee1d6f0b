// What the cells of a trial are made of, held against cells that are made here.
#include "client/evaluation/cell_trial.h"

#include <random>

#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using Kind = CellTrial::Kind;

// Two classes, which differ little and for certain in the last column; the one before is wide and
// tells nothing.
Study TwoClassStudy() {
  std::mt19937 bits(1);
  std::normal_distribution<double> normal;
  Study study = SmallStudy();
  study.data = {};
  study.data.features.resize(400, 3);
  for (int i = 0; i < 400; ++i) {
    study.data.features.row(i) << 5, 3 * normal(bits), (i % 2 == 0 ? .5 : -.5) + .02 * normal(bits);
    study.data.features.row(i).normalize();
    study.data.labels.push_back(i % 2);
  }
  study.k = 30;
  study.sizes = {.anchors_per_class = 40, .targets = 60, .gallery_per_class = 120};
  return study;
}

// The fidelity of each target where the items nearer to the mean of its side's anchors than to
// that of the other side's answer, all of them.
std::vector<double> FidelityOfSides(const Trial& trial, const std::vector<int32_t>& sides) {
  const auto& [anchors, gallery, targets] = trial.split;
  Matrix means = Matrix::Zero(2, anchors.features.cols());
  for (size_t i = 0; i < sides.size(); ++i) {
    means.row(sides[i]) += anchors.features.row(static_cast<Eigen::Index>(i)) /
                           static_cast<double>(std::count(sides.begin(), sides.end(), sides[i]));
  }
  const auto side = [&](const RowVector& row) {
    return (row - means.row(1)).norm() < (row - means.row(0)).norm();
  };
  std::vector<double> fidelity;
  for (Eigen::Index target = 0; target < targets.features.rows(); ++target) {
    double found = 0;
    for (const int64_t item : trial.nearest[static_cast<size_t>(target)]) {
      found += side(gallery.features.row(item)) == side(targets.features.row(target)) ? 1 : 0;
    }
    fidelity.push_back(found / static_cast<double>(trial.k));
  }
  return fidelity;
}

// Two cells, of which all items answer for their own, asked for with hardly any privacy.
std::vector<double> FidelityOf(const CellTrial& trial) {
  const auto answers = trial.AskAll({.cells = 2, .length = 240, .overlap = 1}, 80, "test");
  EXPECT_THAT(answers, IsOk());
  return answers.ok() ? answers->fidelity : std::vector<double>();
}

TEST(CellTrialOfEmbedding, CutsTheAnchorsByTheRowsThatItIsGiven) {
  const std::shared_ptr<const Trial> trial = *MakeTrial(TwoClassStudy(), 1);
  const size_t anchors = trial->split.anchors.labels.size();
  std::vector<int32_t> sides;
  Matrix embedded(static_cast<Eigen::Index>(anchors), 1);
  for (size_t i = 0; i < anchors; ++i) {
    sides.push_back(static_cast<int32_t>(i % 3 == 0));
    embedded(static_cast<Eigen::Index>(i), 0) = sides.back();
  }
  const std::vector<double> found = FidelityOf(CellTrial(trial, Kind::kOfEmbedding, embedded));
  EXPECT_EQ(found, FidelityOfSides(*trial, sides));
  EXPECT_NE(found, FidelityOf(CellTrial(trial, Kind::kOfAnchors)));
}

TEST(CellTrialOfDiscriminants, CutsTheAnchorsByWhatTellsClassesApart) {
  const std::shared_ptr<const Trial> trial = *MakeTrial(TwoClassStudy(), 1);
  const std::vector<double> found = FidelityOf(CellTrial(trial, Kind::kOfDiscriminants));
  EXPECT_EQ(found, FidelityOfSides(*trial, trial->split.anchors.labels));
  EXPECT_NE(found, FidelityOf(CellTrial(trial, Kind::kOfAnchors)));
}

// Its cells are another k-means': that they are equally large is AnchorCuts' test.
TEST(CellTrialOfEqualSize, IsNotThatOfAnchors) {
  Study study = SmallStudy();
  study.sizes = {.anchors_per_class = 4, .targets = 60, .gallery_per_class = 12};
  const std::shared_ptr<const Trial> trial = *MakeTrial(study, 1);
  const CellPlan plan = {.cells = 6, .length = 30};
  EXPECT_NE(CellTrial(trial, Kind::kBalanced).AskAll(plan, 3, "test")->fidelity,
            CellTrial(trial, Kind::kOfAnchors).AskAll(plan, 3, "test")->fidelity);
}

// Noise in many directions: lists that were made of an item find much more of its neighbours than
// others', which is what a plan must not be tried on.
TEST(CellTrialPlan, IsTriedOnItemsThatItsListsDoNotKnow) {
  Study study = SmallStudy();
  study.data = Clouds(2, 800, 40, 1);
  study.sizes = {.anchors_per_class = 100, .targets = 400, .gallery_per_class = 500};
  double excess = 0;
  for (const uint64_t seed : {1, 2, 3}) {
    const CellTrial trial(*MakeTrial(study, seed), Kind::kOfAnchors);
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

}  // namespace
}  // namespace privatemail::client
