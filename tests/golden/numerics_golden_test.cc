#include <string>

#include "common/numerics/alignment.h"
#include "common/numerics/neighbors.h"
#include "common/numerics/smlq.h"
#include "common/numerics/tiled_affinity.h"
#include "tests/golden/golden.h"

namespace privatemail {
namespace {

using nlohmann::json;

KernelConvention KernelFrom(const std::string& name) {
  if (name == "two_sigma_squared") return KernelConvention::kTwoSigmaSquared;
  return name == "sigma" ? KernelConvention::kSigma : KernelConvention::kSigmaSquared;
}

LabelGraphKind GraphFrom(const std::string& name) {
  if (name == "distance") return LabelGraphKind::kDistance;
  return name == "kernel" ? LabelGraphKind::kKernel : LabelGraphKind::kOneHotKernel;
}

// One noise-free run of the whole scheme, both sides, for every label graph and kernel convention.
class JointSchemeGolden : public ::testing::TestWithParam<int> {};

TEST_P(JointSchemeGolden, EqualsTheReferenceFromStartToNearestItems) {
  const json& scheme = Golden().at("joint_scheme");
  ASSERT_EQ(scheme.at("runs").size(), 9u);
  const json& run = scheme.at("runs").at(GetParam());
  EmbeddingSettings settings;
  settings.kernel_bandwidth = scheme.at("bandwidth");
  settings.alpha = scheme.at("alpha");
  settings.steps = scheme.at("post_processing_steps");
  settings.kernel = KernelFrom(run.at("kernel"));
  settings.label_graph = GraphFrom(run.at("label_graph"));
  const double c = settings.KernelDenominator();

  const auto client_labels = scheme.at("client_labels").get<std::vector<int32_t>>();
  const Matrix client_features = MatrixFrom(scheme.at("client_features"));
  const LabelGraph client_graph(client_labels, settings.label_graph, c);
  const Matrix first = SmlqUpdate(MatrixFrom(scheme.at("client_start")),
                                  TiledAffinity(client_features, c), client_graph, settings.alpha)
                           .value();
  ExpectSame(first, MatrixFrom(run.at("first_iteration")));
  const auto client = PostProcess(first, client_graph, settings);
  ASSERT_TRUE(client.ok()) << client.status();
  ExpectSame(*client, MatrixFrom(run.at("client")));

  const int targets = scheme.at("n_targets");
  const Matrix gallery = MatrixFrom(scheme.at("gallery_features"));
  Matrix server_features(gallery.rows() + client_features.rows() - targets, gallery.cols());
  server_features << gallery, client_features.bottomRows(client_features.rows() - targets);
  auto server_labels = scheme.at("gallery_labels").get<std::vector<int32_t>>();
  server_labels.insert(server_labels.end(), client_labels.begin() + targets, client_labels.end());
  const auto server =
      SmlqIterate(MatrixFrom(scheme.at("server_start")), TiledAffinity(server_features, c),
                  LabelGraph(server_labels, settings.label_graph, c), settings.alpha,
                  settings.steps, settings.normalise);
  ASSERT_TRUE(server.ok()) << server.status();
  ExpectSame(*server, MatrixFrom(run.at("server")));

  const auto map = KabschUmeyama(client->bottomRows(client->rows() - targets),
                                 server->bottomRows(server->rows() - gallery.rows()), true);
  ASSERT_TRUE(map.ok()) << map.status();
  ExpectSame(map->scale, run.at("scale"));
  ExpectSame(map->rotation, MatrixFrom(run.at("rotation")));
  ExpectSame(map->translation, MatrixFrom(json::array({run.at("translation")})));
  const Matrix aligned = map->Apply(client->topRows(targets));
  ExpectSame(aligned, MatrixFrom(run.at("aligned_targets")));

  const auto nearest = NearestRows(aligned, server->topRows(gallery.rows()), 4);
  for (int slot = 0; slot < targets; ++slot) {
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(nearest[slot][i].row, run.at("nearest")[slot][i].get<int64_t>());
  }
}

INSTANTIATE_TEST_SUITE_P(EveryGraphAndKernel, JointSchemeGolden, ::testing::Range(0, 9));

TEST(UmeyamaGolden, EqualsTheReferenceForASimilarityAndForAReflection) {
  ASSERT_EQ(Golden().at("umeyama").size(), 2u);
  for (const json& golden : Golden().at("umeyama")) {
    const auto map =
        KabschUmeyama(MatrixFrom(golden.at("source")), MatrixFrom(golden.at("target")), true);
    ASSERT_TRUE(map.ok()) << map.status();
    ExpectSame(map->scale, golden.at("scale"));
    ExpectSame(map->rotation, MatrixFrom(golden.at("rotation")));
    ExpectSame(map->translation, MatrixFrom(json::array({golden.at("translation")})));
  }
}

}  // namespace
}  // namespace privatemail
