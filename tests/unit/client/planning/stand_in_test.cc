#include "client/planning/stand_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace privatemail::client {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

Matrix Points(int64_t rows, int64_t columns) {
  std::mt19937 bits(3);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(bits); });
}

TEST(StandIns, HoldEachAnchorOutOnceAndAreMadeOfTheOthers) {
  const std::vector<StandIn> stand_ins = MakeStandIns(Points(95, 3), Points(95, 3), 5);
  ASSERT_THAT(stand_ins, SizeIs(10));
  std::multiset<int64_t> held_out;
  for (const StandIn& stand_in : stand_ins) {
    EXPECT_TRUE(std::is_sorted(stand_in.items.begin(), stand_in.items.end()));
    std::set<int64_t> all(stand_in.items.begin(), stand_in.items.end());
    EXPECT_EQ(all.size(), stand_in.items.size());
    for (const Asker& asker : stand_in.held_out) {
      held_out.insert(asker.anchor);
      EXPECT_TRUE(all.insert(asker.anchor).second) << "an item asks";
    }
    EXPECT_EQ(all.size(), 95U);
    EXPECT_EQ(stand_in.known.size(), stand_in.held_out.size());
    for (const Asker& asker : stand_in.known) {
      EXPECT_TRUE(std::binary_search(stand_in.items.begin(), stand_in.items.end(), asker.anchor));
    }
    EXPECT_THAT(stand_in.nearest, SizeIs(stand_in.items.size()));
    EXPECT_THAT(stand_in.nearest, Each(SizeIs(5)));
  }
  EXPECT_EQ(held_out.size(), 95U);
  EXPECT_EQ(std::set<int64_t>(held_out.begin(), held_out.end()).size(), 95U);
}

TEST(StandIns, KnowWhichItemsAreNear) {
  const Matrix points = Points(40, 2);
  const Matrix decoded = points + .3 * Points(80, 2).bottomRows(40);
  const auto expect_by_distance = [&](const StandIn& stand_in, int64_t from, const auto& places,
                                      const Matrix& items) {
    double before = 0;
    for (const auto place : places) {
      const int64_t item = stand_in.items[static_cast<size_t>(place)];
      const double distance = (points.row(from) - items.row(item)).norm();
      EXPECT_NE(item, from);
      EXPECT_GE(distance, before);
      before = distance;
    }
    // None of the others is nearer.
    int64_t nearer = 0;
    for (const int64_t item : stand_in.items) {
      if (item != from && (points.row(from) - items.row(item)).norm() < before) ++nearer;
    }
    EXPECT_EQ(nearer, std::ssize(places) - 1);
  };
  for (const StandIn& stand_in : MakeStandIns(points, decoded, 7)) {
    for (size_t item = 0; item < stand_in.items.size(); ++item) {
      expect_by_distance(stand_in, stand_in.items[item], stand_in.nearest[item], points);
    }
    for (const Asker& asker : stand_in.held_out) {
      EXPECT_THAT(asker.items, SizeIs(36));
      expect_by_distance(stand_in, asker.anchor, asker.items, points);
      expect_by_distance(stand_in, asker.anchor, asker.by_codes, decoded);
    }
    for (const Asker& asker : stand_in.known) {
      EXPECT_THAT(asker.items, SizeIs(35)) << "without itself";
      expect_by_distance(stand_in, asker.anchor, asker.items, points);
      expect_by_distance(stand_in, asker.anchor, asker.by_codes, decoded);
    }
  }
}

// Operators give anchors class by class, or in turn.
TEST(StandIns, HoldOutNoClassAsAWhole) {
  for (const auto class_of :
       {+[](int64_t row) { return row / 10; }, +[](int64_t row) { return row % 10; }}) {
    for (const StandIn& stand_in : MakeStandIns(Points(100, 2), Points(100, 2), 1)) {
      std::set<int64_t> classes;
      for (const int64_t item : stand_in.items) classes.insert(class_of(item));
      EXPECT_THAT(classes, SizeIs(10));
    }
  }
}

TEST(StandIns, AreMadeOfSomeOfManyAnchors) {
  const Matrix points = Points(2 * kMostStandIns + 1, 1);
  const std::vector<StandIn> stand_ins = MakeStandIns(points, points, 3);
  ASSERT_THAT(stand_ins, SizeIs(10));
  for (const StandIn& stand_in : stand_ins) {
    EXPECT_THAT(stand_in.items, SizeIs(kMostStandIns * 9 / 10));
    EXPECT_THAT(stand_in.held_out, SizeIs(kMostAskers));
    EXPECT_LE(stand_in.items.front(), 40);
    EXPECT_GE(stand_in.items.back(), 2 * kMostStandIns - 40);
  }
}

}  // namespace
}  // namespace privatemail::client
