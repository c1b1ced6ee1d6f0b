#include "privatemail/radius_meaning.h"

#include <gmock/gmock.h>

#include "common/base/validate.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client {
namespace {

TEST(RadiusStats, CountsPairsAsTheyAreApart) {
  const Matrix anchors = *UnitRows("anchors", NormalRows(300, 5, 1));
  std::vector<int64_t> classes;
  for (int i = 0; i < 300; ++i) classes.push_back(i % 7 == 0 ? 1 : 0);
  const RadiusStats meaning = ComputeRadiusStats(anchors, classes, .8);
  RadiusStats expected{.radius = .8};
  for (int i = 0; i < 300; ++i) {
    for (int j = i + 1; j < 300; ++j) {
      const bool close = (anchors.row(i) - anchors.row(j)).norm() <= .8;
      if (classes[i] == classes[j]) {
        ++expected.same_class_pairs;
        expected.same_class_pairs_within += close;
      } else {
        ++expected.cross_class_pairs;
        expected.cross_class_pairs_within += close;
      }
    }
  }
  EXPECT_EQ(meaning.same_class_pairs, expected.same_class_pairs);
  EXPECT_EQ(meaning.cross_class_pairs, expected.cross_class_pairs);
  EXPECT_EQ(meaning.same_class_pairs_within, expected.same_class_pairs_within);
  EXPECT_EQ(meaning.cross_class_pairs_within, expected.cross_class_pairs_within);
  EXPECT_GT(meaning.same_class_pairs_within, 0);
}

TEST(RadiusStats, IsToldInShares) {
  const RadiusStats meaning{.radius = .5,
                              .same_class_pairs = 200,
                              .cross_class_pairs = 1000,
                              .same_class_pairs_within = 6,
                              .cross_class_pairs_within = 2};
  EXPECT_EQ(meaning.ToString(),
            "closer than 0.5: 3 % of pairs of one class, 0.2 % of pairs of two classes");
  EXPECT_EQ(
      (RadiusStats{.radius = 2, .cross_class_pairs = 1, .cross_class_pairs_within = 1}).ToString(),
      "closer than 2: there are no pairs of one class, 100 % of pairs of two classes");
}

// More anchors than are compared: as many stand for all.
TEST(RadiusStats, OfManyAnchorsIsThatOfAsManyEvenlySpaced) {
  Matrix anchors(9001, 2);
  std::vector<int64_t> classes;
  for (int i = 0; i < 9001; ++i) {
    anchors.row(i) << (i < 4500 ? 1 : -1), 0;
    classes.push_back(i < 4500 ? 0 : 1);
  }
  const RadiusStats meaning = ComputeRadiusStats(anchors, classes, .1);
  EXPECT_EQ(meaning.same_class_pairs + meaning.cross_class_pairs, 4000 * 3999 / 2);
  EXPECT_EQ(meaning.same_class_pairs_within, meaning.same_class_pairs);
  EXPECT_EQ(meaning.cross_class_pairs_within, 0);
}

}  // namespace
}  // namespace privatemail::client
