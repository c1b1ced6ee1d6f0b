#include "client/evaluation/experiments/library_baselines.h"

#include "client/evaluation/baselines/all_baselines.h"
#include "client/evaluation/seeded_bits.h"
#include "client/evaluation/split.h"
#include "tests/unit/evaluation/synthetic.h"

namespace privatemail {
namespace {

using testing::EndsWith;

DataSplit SmallSplit() {
  return *MakeSplit(Clouds(4, 30, 8, 1),
                    {.anchors_per_class = 10, .targets = 8, .gallery_per_class = 15}, 1);
}

// The experiment has the features themselves and chance.
TEST(LibraryBaselines, AreAllOthersThatThereAre) {
  EXPECT_EQ(LibraryBaselines(2, 60).size(), baselines::AllBaselines().size() - 2);
}

TEST(LibraryBaselines, PlaceEveryRow) {
  const DataSplit split = SmallSplit();
  for (const Baseline& baseline : LibraryBaselines(2, 60)) {
    SeededBits bits(3);
    ASSERT_OK_AND_ASSIGN(const BaselineRows rows, baseline.rows(split, 10, 1e-5, bits));
    EXPECT_EQ(rows.gallery.rows(), 60) << baseline.name;
    EXPECT_EQ(rows.targets.rows(), 8) << baseline.name;
    EXPECT_EQ(rows.gallery.cols(), rows.targets.cols()) << baseline.name;
    EXPECT_LT(rows.gallery.cwiseAbs().maxCoeff(), 1e9) << baseline.name;
  }
}

// 60 rows, of which every second is embedded with the targets.
TEST(LibraryBaselines, SayWhatTheyLeaveOutAndNeverFindIt) {
  const DataSplit split = SmallSplit();
  int leave_out = 0;
  for (const Baseline& baseline : LibraryBaselines(2, 60, 30)) {
    SeededBits bits(3);
    ASSERT_OK_AND_ASSIGN(const BaselineRows rows, baseline.rows(split, 10, 1e-5, bits));
    ASSERT_EQ(rows.gallery.rows(), 60);
    const bool all = rows.gallery.cwiseAbs().maxCoeff() < 1e9;
    if (all) {
      EXPECT_THAT(baseline.name, testing::Not(EndsWith("gallery rows)")));
      continue;
    }
    ++leave_out;
    EXPECT_THAT(baseline.name, EndsWith(" (30 gallery rows)"));
    for (Eigen::Index row = 0; row < 60; ++row) {
      EXPECT_EQ(rows.gallery.row(row).cwiseAbs().maxCoeff() > 1e9, row % 2 == 1) << row;
    }
  }
  EXPECT_EQ(leave_out, 2);
}

}  // namespace
}  // namespace privatemail
