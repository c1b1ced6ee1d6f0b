#include "client/evaluation/scene.h"

#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "absl/strings/str_format.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/data.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "server/engine/embed.h"
#include "tests/testing/matchers.h"
#include "tests/unit/client/evaluation/synthetic.h"

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

TEST(SeededBits, AreTheWordsOfTheStandardsGenerator) {
  SeededBits bits(7);
  std::array<uint8_t, 12> bytes = {};
  ASSERT_THAT(bits.Fill(absl::MakeSpan(bytes)), IsOk());
  std::mt19937_64 generator(7);
  const uint64_t first = generator();
  const uint64_t second = generator();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(bytes[i], (first >> (8 * i)) & 0xff);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(bytes[8 + i], (second >> (8 * i)) & 0xff);
}

TEST(SeedOf, DiffersWithThePartTheSeedAndTheNumber) {
  std::set<uint64_t> seeds;
  for (const char* part : {"", "a", "b", "ab", "ba"}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      for (uint64_t number = 0; number < 20; ++number) seeds.insert(SeedOf(part, seed, number));
    }
  }
  EXPECT_EQ(seeds.size(), 5u * 20 * 20);
  EXPECT_EQ(SeedOf("a", 1, 2), SeedOf("a", 1, 2));
}

EmbeddingSettings With(double alpha, double bandwidth) {
  EmbeddingSettings settings = SmallStudy().settings;
  settings.alpha = alpha;
  settings.kernel_bandwidth = bandwidth;
  return settings;
}

// The service's embedding of the scene's own parts.
server::Embedding ServersEmbedding(const Scene& scene) {
  const DataSplit& split = scene.trial->split;
  server::Gallery gallery;
  for (size_t i = 0; i < split.gallery.labels.size(); ++i) {
    gallery.ids.push_back(absl::StrFormat("%012d", i));  // ids ascend
  }
  gallery.labels = split.gallery.labels;
  gallery.payloads.resize(gallery.ids.size());
  gallery.features = split.gallery.features.cast<float>();
  return *server::Embed(
      scene.joint.parameters,
      {.features = split.anchors.features.cast<float>(), .labels = split.anchors.labels}, gallery,
      nullptr);
}

TEST(Scene, OverKeptAffinitiesIsBitForBitTheServers) {
  Stage stage(SmallStudy());
  ASSERT_OK_AND_ASSIGN(const auto trial, stage.TrialOf(1));
  for (const double alpha : {3., 1.}) {
    for (const double bandwidth : {6., 1.}) {
      ASSERT_OK_AND_ASSIGN(const auto scene, MakeScene(trial, With(alpha, bandwidth)));
      const server::Embedding servers = ServersEmbedding(*scene);
      EXPECT_EQ(scene->embedded->items.points(), servers.coordinates);
      EXPECT_EQ(scene->embedded->anchors, servers.anchor_coordinates);
      EXPECT_EQ(scene->embedded->objective, servers.objective);
    }
  }
}

TEST(Scene, IsMadeOnceForItsSettingsAndSplit) {
  Stage stage(SmallStudy());
  ASSERT_OK_AND_ASSIGN(const auto trial, stage.TrialOf(1));
  ASSERT_OK_AND_ASSIGN(const auto scene, MakeScene(trial, With(3, 6)));
  EXPECT_EQ(*MakeScene(trial, With(3, 6)), scene);
  EXPECT_EQ(*stage.SceneOf(1), scene);
  EXPECT_NE(*stage.SceneOf(2), scene);
  ASSERT_OK_AND_ASSIGN(const auto other_alpha, MakeScene(trial, With(1, 6)));
  EXPECT_NE(other_alpha, scene);
  EXPECT_EQ(other_alpha->joint.anchors, scene->joint.anchors);
  ASSERT_OK_AND_ASSIGN(const auto other_bandwidth, MakeScene(trial, With(3, 1)));
  EXPECT_NE(other_bandwidth->joint.anchors, scene->joint.anchors);
}

TEST(MadeOnce, MakesAgainWhatItHadToLetGo) {
  MadeOnce<int, int> made(2);
  int makes = 0;
  const auto get = [&](int key) {
    return **made.Get(key, [&]() -> MadeOnce<int, int>::Value {
      ++makes;
      return std::make_shared<const int>(10 * key);
    });
  };
  for (const int key : {1, 2, 1, 3, 1}) EXPECT_EQ(get(key), 10 * key);
  EXPECT_EQ(makes, 3);  // 2 went for 3, since 1 had been asked for since
  EXPECT_EQ(get(2), 20);
  EXPECT_EQ(makes, 4);
}

TEST(Describe, TellsAllSettingsApart) {
  const std::string described = Describe(SmallStudy());
  const auto differs = [&](void (*change)(Study&)) {
    Study study = SmallStudy();
    change(study);
    return Describe(study) != described;
  };
  EXPECT_TRUE(differs([](Study& s) { s.settings.alpha += 1e-9; }));
  EXPECT_TRUE(differs([](Study& s) { s.settings.kernel_bandwidth += 1e-9; }));
  EXPECT_TRUE(differs([](Study& s) { s.settings.kernel = KernelConvention::kSigma; }));
  EXPECT_TRUE(differs([](Study& s) { s.settings.label_graph = LabelGraphKind::kKernel; }));
  EXPECT_TRUE(differs([](Study& s) { ++s.settings.embedding_dim; }));
  EXPECT_TRUE(differs([](Study& s) { ++s.settings.steps; }));
  EXPECT_TRUE(differs([](Study& s) { s.settings.normalise = false; }));
  EXPECT_TRUE(differs([](Study& s) { s.settings.start_stddev *= 2; }));
  EXPECT_TRUE(differs([](Study& s) { ++s.k; }));
}

TEST(ScoreRows, RowsThatAreNotFiniteAreNoAnswer) {
  ASSERT_OK_AND_ASSIGN(const auto trial, MakeTrial(SmallStudy(), 1));
  const Matrix& gallery = trial->split.gallery.features;
  Matrix targets = trial->split.targets.features;
  EXPECT_EQ(ScoreRows(*trial, gallery, targets).unanswered, 0);
  EXPECT_EQ(ScoreRows(*trial, gallery, targets).fidelity[3], 1);
  targets(3, 2) = std::nan("");
  const Answers one = ScoreRows(*trial, gallery, targets);
  EXPECT_EQ(one.unanswered, 1);
  EXPECT_EQ(one.fidelity[3], 0);
  EXPECT_EQ(one.fidelity[4], 1);
  Matrix wrong = gallery;
  wrong(0, 0) = HUGE_VAL;
  const Answers none = ScoreRows(*trial, wrong, trial->split.targets.features);
  EXPECT_EQ(none.unanswered, 20);
  EXPECT_EQ(none.hit, std::vector<double>(20));
}

}  // namespace
}  // namespace privatemail::client
