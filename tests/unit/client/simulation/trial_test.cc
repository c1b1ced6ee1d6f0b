#include "client/simulation/trial.h"

#include <array>
#include <set>

#include "absl/strings/str_format.h"
#include "client/seeded_bits/seeded_bits.h"
#include "server/engine/embed.h"
#include "tests/unit/client/simulation/clouds.h"

namespace privatemail::client::simulation {
namespace {

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

TEST(SeedOf, DiffersWithPartSeedAndNumber) {
  std::set<uint64_t> seeds;
  for (const char* part : {"", "a", "b", "ab", "ba"}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      for (uint64_t number = 0; number < 20; ++number) seeds.insert(SeedOf(part, seed, number));
    }
  }
  EXPECT_EQ(seeds.size(), 5u * 20 * 20);
  // Computed with Python integers: a stage of SplitMix64 for the seed, one for the number and one
  // for each letter.
  EXPECT_EQ(SeedOf("ab", 1, 2), 100818756100395660u);
}

// The daemon's embedding of the scene's own parts.
server::Embedding DaemonEmbedding(const Scene& scene) {
  const Split& split = scene.trial->split();
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

TEST(Scene, OverCachedAffinitiesEqualsTheDaemonsBitForBit) {
  const auto trial = SmallTrial();
  for (const double alpha : {3., 1.}) {
    for (const double bandwidth : {6., 1.}) {
      ASSERT_OK_AND_ASSIGN(const auto scene, trial->SceneOf(SmallSettings(alpha, bandwidth)));
      const server::Embedding expected = DaemonEmbedding(*scene);
      EXPECT_EQ(scene->embedded->items.points(), expected.coordinates);
      EXPECT_EQ(scene->embedded->anchors, expected.anchor_coordinates);
    }
  }
}

TEST(Trial, InvalidSplitsReturnInvalidArgument) {
  const auto refused = [](void (*change)(Split*), int64_t k, const char* message) {
    Split split = SplitOf(Clouds(20, 20, 8, 1), 4, 1);
    change(&split);
    EXPECT_THAT(Trial::Create(std::move(split), k, 1), FailsWith(kInvalid, message));
  };
  refused([](Split*) {}, 0, "k must be between 1 and");
  refused([](Split*) {}, 1000, "k must be between 1 and");
  refused([](Split* split) { split->targets.labels[0] = 99; }, 4, "one has label 99");
  refused([](Split* split) { split->gallery.labels.pop_back(); }, 4, "gallery must have a label");
  refused([](Split* split) { split->targets.features(0, 0) = NAN; }, 4, "targets row 0");
  refused([](Split* split) { split->anchors.labels.assign(split->anchors.labels.size(), 1); }, 4,
          "2 classes or more");
}

}  // namespace
}  // namespace privatemail::client::simulation
