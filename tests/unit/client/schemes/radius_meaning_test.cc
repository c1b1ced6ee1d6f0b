#include "privatemail/radius_meaning.h"

#include <gmock/gmock.h>

#include "common/base/validate.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client {
namespace {

TEST(RadiusMeaning, CountsPairsAsTheyAreApart) {
  const Matrix anchors = *UnitRows("anchors", NormalRows(300, 5, 1));
  std::vector<int64_t> classes;
  for (int i = 0; i < 300; ++i) classes.push_back(i % 7 == 0 ? 1 : 0);
  const RadiusMeaning meaning = MeaningOfRadius(anchors, classes, .8);
  RadiusMeaning expected{.radius = .8};
  for (int i = 0; i < 300; ++i) {
    for (int j = i + 1; j < 300; ++j) {
      const bool close = (anchors.row(i) - anchors.row(j)).norm() <= .8;
      if (classes[i] == classes[j]) {
        ++expected.pairs_of_one_class;
        expected.close_of_one_class += close;
      } else {
        ++expected.pairs_of_two_classes;
        expected.close_of_two_classes += close;
      }
    }
  }
  EXPECT_EQ(meaning.pairs_of_one_class, expected.pairs_of_one_class);
  EXPECT_EQ(meaning.pairs_of_two_classes, expected.pairs_of_two_classes);
  EXPECT_EQ(meaning.close_of_one_class, expected.close_of_one_class);
  EXPECT_EQ(meaning.close_of_two_classes, expected.close_of_two_classes);
  EXPECT_GT(meaning.close_of_one_class, 0);
}

TEST(RadiusMeaning, IsToldInShares) {
  const RadiusMeaning meaning{.radius = .5,
                              .pairs_of_one_class = 200,
                              .pairs_of_two_classes = 1000,
                              .close_of_one_class = 6,
                              .close_of_two_classes = 2};
  EXPECT_EQ(meaning.InWords(),
            "closer than 0.5: 3 % of pairs of one class, 0.2 % of pairs of two classes");
  EXPECT_EQ(
      (RadiusMeaning{.radius = 2, .pairs_of_two_classes = 1, .close_of_two_classes = 1}).InWords(),
      "closer than 2: there are no pairs of one class, 100 % of pairs of two classes");
}

// More anchors than are compared: as many stand for all.
TEST(RadiusMeaning, OfManyAnchorsIsThatOfAsManyEvenlySpaced) {
  Matrix anchors(9001, 2);
  std::vector<int64_t> classes;
  for (int i = 0; i < 9001; ++i) {
    anchors.row(i) << (i < 4500 ? 1 : -1), 0;
    classes.push_back(i < 4500 ? 0 : 1);
  }
  const RadiusMeaning meaning = MeaningOfRadius(anchors, classes, .1);
  EXPECT_EQ(meaning.pairs_of_one_class + meaning.pairs_of_two_classes, 4000 * 3999 / 2);
  EXPECT_EQ(meaning.close_of_one_class, meaning.pairs_of_one_class);
  EXPECT_EQ(meaning.close_of_two_classes, 0);
}

}  // namespace
}  // namespace privatemail::client
