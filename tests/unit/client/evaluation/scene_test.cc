#include "client/evaluation/scene.h"

#include <fstream>
#include <iterator>
#include <optional>

#include "absl/strings/str_format.h"
#include "client/evaluation/asking.h"
#include "common/base/status_macros.h"
#include "common/base/sha256.h"
#include "server/engine/embed.h"
#include "tests/unit/client/evaluation/synthetic.h"

namespace privatemail::client {
namespace {

EmbeddingSettings With(double alpha, double bandwidth) {
  EmbeddingSettings settings = SmallStudy().settings;
  settings.alpha = alpha;
  settings.kernel_bandwidth = bandwidth;
  return settings;
}

// What the service would compute of the scene's own parts.
server::Embedding ServersEmbedding(const Scene& scene) {
  const DataSplit& split = scene.trial->split;
  server::Gallery gallery;
  for (size_t i = 0; i < split.gallery.labels.size(); ++i) {
    gallery.ids.push_back(absl::StrFormat("%012d", i));  // ids ascend
  }
  gallery.labels = split.gallery.labels;
  gallery.payloads.resize(gallery.ids.size());
  gallery.features = split.gallery.features.cast<float>();
  return *server::Embed(scene.joint.parameters,
                {.features = split.anchors.features.cast<float>(), .labels = split.anchors.labels},
                gallery, nullptr);
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

TEST(Scene, OfATrialWithoutAStageIsTheSame) {
  Stage stage(SmallStudy());
  ASSERT_OK_AND_ASSIGN(const auto kept, stage.SceneOf(1));
  ASSERT_OK_AND_ASSIGN(const auto trial, MakeTrial(SmallStudy(), 1));
  ASSERT_OK_AND_ASSIGN(const auto scene, MakeScene(trial, SmallStudy().settings));
  EXPECT_EQ(scene->embedded->items.points(), kept->embedded->items.points());
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

TEST(Describe, NamesTheProgramByItsFile) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string program((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
  ASSERT_GT(program.size(), 1000u);
  EXPECT_THAT(Describe(SmallStudy()), testing::HasSubstr(ToHex(Sha256::Of(program))));
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
