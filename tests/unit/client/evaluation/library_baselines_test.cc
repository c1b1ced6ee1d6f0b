#include "client/baselines/all_baselines.h"
#include "client/evaluation/data.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/seeded_bits/seeded_bits.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

using testing::EndsWith;

DataSplit SmallSplit() {
  return *MakeSplit(Clouds(4, 30, 8, 1),
                    {.anchors_per_class = 10, .targets = 8, .gallery_per_class = 15}, 1);
}

std::vector<std::string> NamesOf(const std::vector<Baseline>& baselines) {
  std::vector<std::string> names;
  for (const Baseline& baseline : baselines) names.push_back(baseline.name);
  return names;
}

// The experiment has the features themselves and chance.
TEST(LibraryBaselines, AreAllOthersThatThereAreAndTheQuickOnesWiderToo) {
  EXPECT_THAT(NamesOf(LibraryBaselines(SmallSplit(), 2)),
              testing::ElementsAre(
                  "PCA, not private (2 columns)", "PCA, not private (8 columns)",
                  "t-SNE, not private (2 columns)", "private PCA, analyse-Gauss (2 columns)",
                  "private PCA, analyse-Gauss (8 columns)",
                  "private PCA, exponential mechanism, as published (2 columns)",
                  "private PCA, exponential mechanism over public candidates (2 columns)",
                  "private PCA, exponential mechanism over public candidates (8 columns)",
                  "private random projections (2 columns)",
                  "private random projections (8 columns)", "DP-dSNE (2 columns)"));
  EXPECT_EQ(LibraryBaselines(SmallSplit(), 8).size(), baselines::AllBaselines().size() - 2);
}

// What a line claims, in name and words, is what the baseline's own result says.
TEST(LibraryBaselines, SayWhatTheirResultsSay) {
  const DataSplit split = SmallSplit();
  auto settings = baselines::Settings::OfDimension(2);
  settings.tsne.perplexity = settings.dp_dsne.tsne.perplexity = 5;
  const std::vector<Baseline> lines = LibraryBaselines(split, 8);
  size_t line = 0;
  int unproven = 0;
  for (const baselines::Baseline& baseline : baselines::AllBaselines()) {
    const std::string id = baseline.name;
    if (id == "features" || id == "random-guess") continue;
    SeededBits bits(3);
    ASSERT_OK_AND_ASSIGN(const auto result, baseline.run(split, settings, {1, 1e-5}, bits));
    ASSERT_LT(line, lines.size());
    EXPECT_EQ(lines[line].protects, result.protects) << lines[line].name;
    EXPECT_EQ(lines[line].name.find("published") == std::string::npos, result.guarantee.proven)
        << lines[line].name;
    EXPECT_EQ(lines[line].hides_targets, id == "random-projection" || id == "dp-dsne") << id;
    unproven += result.guarantee.proven ? 0 : 1;
    ++line;
  }
  EXPECT_EQ(line, lines.size());
  EXPECT_EQ(unproven, 1);
}

// Fewer anchors than a candidate is usually fitted to, fewer rows than t-SNE's usual perplexity,
// and more columns asked for than there are.
TEST(LibraryBaselines, TakeWhatThereIsOfThreeClasses) {
  const DataSplit split = *MakeSplit(
      Clouds(3, 6, 5, 1), {.anchors_per_class = 2, .targets = 3, .gallery_per_class = 3}, 1);
  for (const int64_t dimension : {2, 4, 64}) {
    for (const Baseline& baseline : LibraryBaselines(split, dimension)) {
      SeededBits bits(3);
      ASSERT_OK_AND_ASSIGN(const BaselineRows rows, baseline.rows(split, 1, 1e-5, bits));
      EXPECT_TRUE(rows.gallery.allFinite()) << baseline.name;
      EXPECT_EQ(rows.gallery.rows(), 9) << baseline.name;
      EXPECT_TRUE(rows.gallery.cols() == std::min<int64_t>(dimension, 5) ||
                  rows.gallery.cols() == 5)
          << baseline.name;
    }
  }
}

TEST(LibraryBaselines, RefuseWhatTheyCannotDoByItself) {
  const DataSplit few = *MakeSplit(
      Clouds(3, 6, 5, 1), {.anchors_per_class = 1, .targets = 3, .gallery_per_class = 4}, 1);
  int refused = 0;
  for (const Baseline& baseline : LibraryBaselines(few, 4)) {
    SeededBits bits(3);
    const auto rows = baseline.rows(few, 1, 1e-5, bits);
    if (baseline.name.find("candidates") == std::string::npos) {
      EXPECT_THAT(rows, IsOk()) << baseline.name;
      continue;
    }
    EXPECT_THAT(rows, FailsWith(absl::StatusCode::kFailedPrecondition, "anchors_each"));
    ++refused;
  }
  EXPECT_EQ(refused, 2);
  DataSplit many = few;
  many.targets.features = few.targets.features.replicate(2500, 1);
  many.targets.labels.assign(7500, 0);
  for (const Baseline& baseline : LibraryBaselines(many, 2)) {
    if (baseline.name.find("SNE") == std::string::npos) continue;
    SeededBits bits(3);
    EXPECT_THAT(baseline.rows(many, 1, 1e-5, bits),
                FailsWith(absl::StatusCode::kFailedPrecondition, "rows to embed"));
  }
}

// Splits differ in what is left for the gallery.
TEST(LibraryBaselines, PlaceEveryRowOfALargerGalleryThanTheFirst) {
  const DataSplit first = SmallSplit();
  DataSplit larger = first;
  larger.gallery.features = first.gallery.features.replicate(2, 1);
  larger.gallery.labels.insert(larger.gallery.labels.end(), first.gallery.labels.begin(),
                               first.gallery.labels.end());
  for (const Baseline& baseline : LibraryBaselines(first, 2, 200)) {
    SeededBits bits(3);
    ASSERT_OK_AND_ASSIGN(const BaselineRows rows, baseline.rows(larger, 10, 1e-5, bits));
    EXPECT_EQ(rows.gallery.rows(), 120) << baseline.name;
    EXPECT_LT(rows.gallery.cwiseAbs().maxCoeff(), 1e9) << baseline.name;
  }
}

// 60 rows, of which every second is embedded with the targets.
TEST(LibraryBaselines, SayWhatTheyLeaveOutAndNeverFindIt) {
  const DataSplit split = SmallSplit();
  int leave_out = 0;
  for (const Baseline& baseline : LibraryBaselines(split, 2, 30)) {
    SeededBits bits(3);
    ASSERT_OK_AND_ASSIGN(const BaselineRows rows, baseline.rows(split, 10, 1e-5, bits));
    ASSERT_EQ(rows.gallery.rows(), 60);
    const bool all = rows.gallery.cwiseAbs().maxCoeff() < 1e9;
    if (all) {
      EXPECT_THAT(baseline.name, testing::Not(EndsWith("gallery rows)")));
      continue;
    }
    ++leave_out;
    EXPECT_THAT(baseline.name, EndsWith(" (2 columns, 30 gallery rows)"));
    for (Eigen::Index row = 0; row < 60; ++row) {
      EXPECT_EQ(rows.gallery.row(row).cwiseAbs().maxCoeff() > 1e9, row % 2 == 1) << row;
    }
  }
  EXPECT_EQ(leave_out, 2);
}

}  // namespace
}  // namespace privatemail::client
