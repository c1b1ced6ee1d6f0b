#include "client/evaluation/cell_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace privatemail::client {
namespace {

using testing::ElementsAre;

// Prototypes at 0, 1, ..., 9 of a line; the even ones find all in cell 2, the others in cell 0.
CellRouter LineRouter() {
  CellRouter router{.prototypes = FloatMatrix(10, 1), .answered = FloatMatrix::Zero(10, 3)};
  for (int at = 0; at < 10; ++at) {
    router.prototypes(at, 0) = static_cast<float>(at);
    router.answered(at, at % 2 == 0 ? 2 : 0) = 1;
  }
  router.bandwidth = 1;
  return router;
}

RowVector At(double x) { return RowVector::Constant(1, x); }

TEST(CellRouter, BlendsTheNearestPrototypesByHowMuchFartherTheyAre) {
  const std::vector<PrototypeWeight> blend = Blend(LineRouter(), At(1));
  ASSERT_EQ(std::ssize(blend), CellRouter::kBlended);
  EXPECT_EQ(blend[0].prototype, 1);
  double sum = 0;
  for (const PrototypeWeight& one : blend) {
    sum += one.weight;
    const double away = std::abs(static_cast<double>(one.prototype) - 1);
    EXPECT_LE(away, 6) << "the nearest eight";
    EXPECT_NEAR(one.weight / blend[0].weight, std::exp(-away * away), 1e-5);
  }
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(CellRouter, RanksCellsByWhatPrototypesAroundAQueryFound) {
  const CellRouter router = LineRouter();
  EXPECT_THAT(RankedCells(router, At(4)), ElementsAre(2, 0, 1));
  EXPECT_THAT(RankedCells(router, At(5)), ElementsAre(0, 2, 1));
}

TEST(CellRouter, CountsEqualPrototypesTheSameWhereThereIsNoBandwidth) {
  CellRouter router{.prototypes = FloatMatrix::Zero(2, 1), .answered = FloatMatrix(2, 2)};
  router.answered << .2F, .4F, .6F, .4F;
  const std::vector<PrototypeWeight> blend = Blend(router, At(0));
  ASSERT_EQ(blend.size(), 2u);
  EXPECT_EQ(blend[0].weight, .5F);
  EXPECT_THAT(RankedCells(router, At(0)), ElementsAre(0, 1)) << "of equal cells the smaller number";
}

}  // namespace
}  // namespace privatemail::client
