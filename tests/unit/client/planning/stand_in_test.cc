#include "client/planning/stand_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "common/cells/cell_lists.h"
#include "tests/unit/client/planning/planned_collections.h"

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

// Anchors on a line at 0, 1, ..., 5, of which the second asks and the others are items, cut in two
// cells: 0, 1, 2 and 3, 4, 5. The first two and the last two are of one class each.
class OnALine : public ::testing::Test {
 protected:
  const ItemCells lie_{.cells = {0, 0, 0, 1, 1, 1}, .squared_distances = {1, 0, 1, 1, 0, 1}};
  const std::vector<int32_t> labels_ = {7, 7, 8, 8, 9, 9};
  // Places: 0 -> anchor 0, 1 -> 2, 2 -> 3, 3 -> 4, 4 -> 5.
  const StandIn stand_in_{
      .items = {0, 2, 3, 4, 5},
      .nearest = {{1}, {2}, {1}, {2}, {3}},
      .held_out = {{.anchor = 1, .items = {0, 1, 2, 3, 4}, .by_codes = {0, 1, 2, 3, 4}}},
      .known = {{.anchor = 5, .items = {3, 2, 1, 0}, .by_codes = {3, 2, 1, 0}}}};

  Found Ask(double own, double k, int64_t alike, const ListLengths& lengths) const {
    return AskStandIn(stand_in_, {.lie = lie_,
                                  .labels = labels_,
                                  .cells = 2,
                                  .epsilon = 32,
                                  .own = own,
                                  .ranks_per_fold = 1,
                                  .k = k,
                                  .alike = alike,
                                  .lengths = {lengths}})
        .front();
  }
};

// From the first cell 0 wants 2 and 2 wants 3, of which 2 lies in it; of the others 4 is wanted
// from elsewhere, and 0 lies in it: its list is 2, 3, 4, 0, 5. From the second 3 wants 2, 4 wants 3
// and 5 wants 4, of which 4 is nearest to its centre: 4, 3, 2, 5, 0.
TEST_F(OnALine, CountsTheNearestItemsThatAListHas) {
  // Of the two nearest to anchor 1, which are 0 and 2, the first of the own list is 2.
  EXPECT_DOUBLE_EQ(Ask(1, 2, 1, {.fidelity = 1, .own = 1, .other = 1}).held_out_fidelity.mean(),
                   .5);
  // And a half of the second, which is 3, is none of them.
  EXPECT_DOUBLE_EQ(Ask(1, 2, 1, {.fidelity = 1.5, .own = 1, .other = 1}).held_out_fidelity.mean(),
                   .5);
  EXPECT_DOUBLE_EQ(Ask(1, 2, 1, {.fidelity = 3.5, .own = 1, .other = 1}).held_out_fidelity.mean(),
                   .75)
      << "half of the fourth, which is 0";
  EXPECT_DOUBLE_EQ(Ask(1, 2, 1, {.fidelity = 5, .own = 1, .other = 1}).held_out_fidelity.mean(), 1);
  // Of the nearest one and a half: 0 and half of 2.
  EXPECT_DOUBLE_EQ(Ask(1, 1.5, 1, {.fidelity = 1, .own = 1, .other = 1}).held_out_fidelity.mean(),
                   .5 / 1.5);
  // The list of the other cell begins with 4 and 3.
  EXPECT_DOUBLE_EQ(Ask(.75, 2, 1, {.fidelity = 2, .own = 1, .other = 1}).held_out_fidelity.mean(),
                   .75 * .5);
  // Who is known asks for its own cell, the second, and has 4 nearest.
  EXPECT_DOUBLE_EQ(Ask(1, 1, 1, {.fidelity = 1, .own = 1, .other = 1}).known_fidelity.mean(), 1);
}

// As if codes had 2 and 3 nearer to anchor 1 than 0, and 5 nearest of all.
TEST_F(OnALine, KeepsWhatIsNearestByItsCode) {
  StandIn stand_in = stand_in_;
  stand_in.held_out[0].by_codes = {4, 1, 2, 0, 3};
  const auto ask = [&](double k, int64_t alike, const ListLengths& lengths) {
    return AskStandIn(stand_in, {.lie = lie_,
                                 .labels = labels_,
                                 .cells = 2,
                                 .epsilon = 32,
                                 .own = 1,
                                 .ranks_per_fold = 1,
                                 .k = k,
                                 .alike = alike,
                                 .lengths = {lengths}})
        .front();
  };
  const auto fidelity = [&](double k, double length) {
    return ask(k, 1, {.fidelity = length, .own = 1, .other = 1}).held_out_fidelity.mean();
  };
  // Of the list 2, 3, 4, 0, 5 come the first four, which codes order 2, 3, 0, 4; 0, 2 and 3 are
  // nearest.
  EXPECT_DOUBLE_EQ(fidelity(2, 4), .5) << "2, and not 0, whose place 3 has";
  EXPECT_DOUBLE_EQ(fidelity(3, 4), 1);
  EXPECT_DOUBLE_EQ(fidelity(2, 5), .5) << "5 and 2";
  EXPECT_DOUBLE_EQ(fidelity(1, 5), 0) << "5 alone";
  EXPECT_DOUBLE_EQ(fidelity(2, 4.5), .5) << "half of 5, 2 and half of 3";
  EXPECT_DOUBLE_EQ(fidelity(1.5, 4), .5 / 1.5) << "2 and half of 3, where 0 and half of 2 are near";
  // The first three of those that came: 2, 3 and 0, of which 0 is of the asker's class.
  const Likeness own = ask(1, 3, {.fidelity = 1, .own = 4, .other = 1}).own;
  EXPECT_EQ(own.one.sum, 1);
  EXPECT_EQ(ask(1, 2, {.fidelity = 1, .own = 4, .other = 1}).own.one.sum, 0);
}

TEST_F(OnALine, LooksAtTheClassesOfTheFirstThatComeBack) {
  // Of the own list all but the last: 2, 3, 4, 0, of which 0 is nearest and of the asker's class.
  Found found = Ask(.5, 1, 1, {.fidelity = 1, .own = 4, .other = 2});
  EXPECT_EQ(found.own.one.mean(), 1);
  EXPECT_EQ(found.own.both.count, 0) << "one has no other";
  EXPECT_EQ(found.other.one.mean(), 0) << "4 and 3 are of other classes";
  found = Ask(.5, 1, 3, {.fidelity = 1, .own = 4, .other = 2});
  EXPECT_EQ(found.own.one.count, 3);
  EXPECT_EQ(found.own.one.sum, 1);
  EXPECT_EQ(found.own.both.count, 3);
  EXPECT_EQ(found.own.both.sum, 0);
  EXPECT_EQ(found.other.one.count, 2) << "no more are in the list";
  // Removal undoes addition.
  Found all = found;
  all.Add(found);
  EXPECT_EQ(all.own.one.count, 6);
  all.Add(found, -1);
  EXPECT_EQ(all.own.one.count, 3);
  EXPECT_EQ(all.own.one.sum, 1);
  EXPECT_EQ(all.held_out_fidelity.mean(), found.held_out_fidelity.mean());
}

// Servers keep lists for some epsilons (common/cells/cell_lists.h), and answer by the nearest.
TEST(Found, IsOfTheListsThatServersKeep) {
  const PlannedCollection collection = CollectionOf(Mixture(300, 1), CellCode::kFloat16);
  const CellPartition& partition = collection.parameters.cell_partitions[0];
  const ItemCells lie{.cells = {partition.cell_of_anchor.begin(), partition.cell_of_anchor.end()},
                      .squared_distances = std::vector<float>(300, 0)};
  const Matrix anchors = collection.anchors.features.cast<double>();
  const StandIn stand_in = MakeStandIns(anchors, anchors, 64).front();
  const auto fidelity = [&](double epsilon) {
    return AskStandIn(stand_in, {.lie = lie,
                                 .labels = collection.anchors.labels,
                                 .cells = partition.cells,
                                 .epsilon = epsilon,
                                 .own = .6,
                                 .ranks_per_fold = 1,
                                 .k = 8,
                                 .alike = 1,
                                 .lengths = {{.fidelity = 12, .own = 1, .other = 1}}})
        .front()
        .held_out_fidelity.mean();
  };
  for (const double epsilon : {.9, 1.1, 2.2, 3.1, 5.}) {
    EXPECT_EQ(fidelity(epsilon), fidelity(QuantiseEpsilon(epsilon))) << epsilon;
  }
}

}  // namespace
}  // namespace privatemail::client
