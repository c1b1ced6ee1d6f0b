#include "client/evaluation/split.h"

#include <map>
#include <set>

#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

// Row i is the number i, so that rows can be told apart.
LabelledRows Numbered(int classes, int each) {
  LabelledRows data;
  data.features.resize(classes * each, 1);
  for (int i = 0; i < classes * each; ++i) {
    data.features(i, 0) = i;
    data.labels.push_back(i % classes);
  }
  return data;
}

std::map<int32_t, int> Count(const LabelledRows& rows) {
  std::map<int32_t, int> count;
  for (const int32_t label : rows.labels) ++count[label];
  return count;
}

TEST(Split, PutsNoRowIntoTwoParts) {
  const LabelledRows data = Numbered(5, 12);
  ASSERT_OK_AND_ASSIGN(const DataSplit split,
                       MakeSplit(data, {.anchors_per_class = 3, .targets = 8}, 1));
  std::set<double> rows;
  size_t count = 0;
  for (const LabelledRows* part : {&split.anchors, &split.gallery, &split.targets}) {
    count += part->labels.size();
    for (Eigen::Index i = 0; i < part->features.rows(); ++i) {
      const auto row = static_cast<size_t>(part->features(i, 0));
      rows.insert(part->features(i, 0));
      EXPECT_EQ(part->labels[static_cast<size_t>(i)], data.labels[row]);
    }
  }
  EXPECT_EQ(count, 60u);
  EXPECT_EQ(rows.size(), 60u);
}

TEST(Split, IsStratified) {
  ASSERT_OK_AND_ASSIGN(
      const DataSplit split,
      MakeSplit(Numbered(5, 12), {.anchors_per_class = 3, .targets = 8, .gallery_per_class = 4},
                1));
  for (const auto& [label, count] : Count(split.anchors)) EXPECT_EQ(count, 3) << label;
  for (const auto& [label, count] : Count(split.gallery)) EXPECT_EQ(count, 4) << label;
  EXPECT_EQ(Count(split.gallery).size(), 5u);
  for (const auto& [label, count] : Count(split.targets)) {
    EXPECT_TRUE(count == 1 || count == 2) << label << " has " << count;
  }
}

TEST(Split, DependsOnTheSeedAlone) {
  const LabelledRows data = Numbered(5, 12);
  const SplitSizes sizes{.anchors_per_class = 3, .targets = 8};
  EXPECT_EQ(MakeSplit(data, sizes, 1)->targets.features,
            MakeSplit(data, sizes, 1)->targets.features);
  EXPECT_NE(MakeSplit(data, sizes, 1)->targets.features,
            MakeSplit(data, sizes, 2)->targets.features);
}

TEST(Split, RefusesWhatItCannotShareOut) {
  const auto refuses = [](const LabelledRows& data, const SplitSizes& sizes, const char* why) {
    EXPECT_THAT(MakeSplit(data, sizes, 1), FailsWith(absl::StatusCode::kInvalidArgument, why));
  };
  refuses(Numbered(1, 12), {.anchors_per_class = 1, .targets = 1}, "at least 2 classes");
  refuses(Numbered(3, 4), {.anchors_per_class = 4, .targets = 1}, "class 0 has 4 rows");
  refuses(Numbered(3, 4), {.anchors_per_class = 0, .targets = 1}, "anchors_per_class");
  // Of each class 4 - 2 are left, and the gallery keeps one.
  refuses(Numbered(3, 4), {.anchors_per_class = 2, .targets = 4}, "targets must be at most 3");
}

TEST(Split, HalvesOfTheClassesAreByLabel) {
  const LabelledRows data = Numbered(5, 2);
  EXPECT_EQ(Count(ClassesOf(data, ClassHalf::kFirst)), (std::map<int32_t, int>{{0, 2}, {1, 2}}));
  EXPECT_EQ(Count(ClassesOf(data, ClassHalf::kSecond)),
            (std::map<int32_t, int>{{2, 2}, {3, 2}, {4, 2}}));
  EXPECT_EQ(ClassesOf(data, ClassHalf::kAll).labels.size(), 10u);
}

}  // namespace
}  // namespace privatemail::client
