#include <string>

#include "common/embedding/alignment.h"
#include "common/embedding/smlq.h"
#include "common/embedding/tiled_affinity.h"
#include "common/numerics/neighbors.h"
#include "tests/golden/golden.h"
#include "tests/testing/matchers.h"

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
class JointSchemeGolden : public ::testing::TestWithParam<int> {
 protected:
  JointSchemeGolden() {
    settings_.kernel_bandwidth = scheme_.at("bandwidth");
    settings_.alpha = scheme_.at("alpha");
    settings_.steps = scheme_.at("post_processing_steps");
    settings_.kernel = KernelFrom(run_.at("kernel"));
    settings_.label_graph = GraphFrom(run_.at("label_graph"));
  }

  absl::StatusOr<Matrix> Client() const {
    const double c = settings_.KernelDenominator();
    const LabelGraph graph(client_labels_, settings_.label_graph, c);
    const Matrix first = SmlqUpdate(MatrixFrom(scheme_.at("client_start")),
                                    TiledAffinity(client_features_, c), graph, settings_.alpha)
                             .value();
    ExpectSame(first, MatrixFrom(run_.at("first_iteration")));
    return PostProcess(first, graph, settings_);
  }

  // Over the gallery and the client's anchors.
  absl::StatusOr<Matrix> Server() const {
    const double c = settings_.KernelDenominator();
    Matrix features(gallery_.rows() + client_features_.rows() - targets_, gallery_.cols());
    features << gallery_, client_features_.bottomRows(client_features_.rows() - targets_);
    auto labels = scheme_.at("gallery_labels").get<std::vector<int32_t>>();
    labels.insert(labels.end(), client_labels_.begin() + targets_, client_labels_.end());
    return SmlqIterate(MatrixFrom(scheme_.at("server_start")), TiledAffinity(features, c),
                       LabelGraph(labels, settings_.label_graph, c), settings_.alpha,
                       settings_.steps, settings_.normalise);
  }

  const json& scheme_ = Golden().at("joint_scheme");
  const json& run_ = scheme_.at("runs").at(GetParam());
  EmbeddingSettings settings_;
  const int targets_ = scheme_.at("n_targets");
  const std::vector<int32_t> client_labels_ =
      scheme_.at("client_labels").get<std::vector<int32_t>>();
  const Matrix client_features_ = MatrixFrom(scheme_.at("client_features"));
  const Matrix gallery_ = MatrixFrom(scheme_.at("gallery_features"));
};

TEST_P(JointSchemeGolden, MatchesReference) {
  ASSERT_EQ(scheme_.at("runs").size(), 9u);
  ASSERT_OK_AND_ASSIGN(const auto client, Client());
  ExpectSame(client, MatrixFrom(run_.at("client")));
  ASSERT_OK_AND_ASSIGN(const auto server, Server());
  ExpectSame(server, MatrixFrom(run_.at("server")));

  ASSERT_OK_AND_ASSIGN(const auto map,
                       KabschUmeyama(client.bottomRows(client.rows() - targets_),
                                     server.bottomRows(server.rows() - gallery_.rows())));
  ExpectSame(map.scale, run_.at("scale"));
  ExpectSame(map.rotation, MatrixFrom(run_.at("rotation")));
  ExpectSame(map.translation, MatrixFrom(json::array({run_.at("translation")})));
  const Matrix aligned = map.Apply(client.topRows(targets_));
  ExpectSame(aligned, MatrixFrom(run_.at("aligned_targets")));

  const auto nearest = NearestRows(aligned, server.topRows(gallery_.rows()), 4);
  for (int slot = 0; slot < targets_; ++slot) {
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(nearest[slot][i].row, run_.at("nearest")[slot][i].get<int64_t>());
  }
}

INSTANTIATE_TEST_SUITE_P(EveryGraphAndKernel, JointSchemeGolden, ::testing::Range(0, 9));

// The balanced graph and the class code as start: labels of any size, unequal classes, noise on the
// release.
TEST(BalancedGolden, MatchesReference) {
  const json& scheme = Golden().at("balanced_scheme");
  const auto slots = scheme.at("slots").get<std::vector<int32_t>>();
  const auto anchor_labels = scheme.at("anchor_labels").get<std::vector<int32_t>>();
  std::vector<int32_t> client_labels = slots;
  client_labels.insert(client_labels.end(), anchor_labels.begin(), anchor_labels.end());
  auto server_labels = scheme.at("gallery_labels").get<std::vector<int32_t>>();
  server_labels.insert(server_labels.end(), anchor_labels.begin(), anchor_labels.end());
  const Matrix client_features = MatrixFrom(scheme.at("client_features"));
  const Matrix gallery = MatrixFrom(scheme.at("gallery_features"));
  Matrix server_features(std::ssize(server_labels), gallery.cols());
  server_features << gallery, client_features.bottomRows(std::ssize(anchor_labels));
  ASSERT_EQ(scheme.at("runs").size(), 3u);
  for (const json& run : scheme.at("runs")) {
    const EmbeddingSettings settings{.kernel_bandwidth = run.at("bandwidth"),
                                     .alpha = run.at("alpha"),
                                     .label_graph = LabelGraphKind::kBalanced,
                                     .embedding_dim = run.at("embedding_dim"),
                                     .steps = run.at("steps"),
                                     .start_stddev = run.at("start_stddev"),
                                     .start = StartKind::kClasses};
    const double c = settings.KernelDenominator();
    const LabelGraph client_graph(client_labels, settings.label_graph, c);
    const Matrix first =
        SmlqUpdate(settings.start_stddev * client_graph.CodeOfRows(settings.embedding_dim),
                   TiledAffinity(client_features, c), client_graph, settings.alpha)
            .value();
    ExpectSame(first, MatrixFrom(run.at("first_iteration")));
    ASSERT_OK_AND_ASSIGN(const Matrix client,
                         PostProcess(first + MatrixFrom(run.at("noise")), client_graph, settings));
    ExpectSame(client, MatrixFrom(run.at("client")));
    const LabelGraph server_graph(server_labels, settings.label_graph, c);
    ASSERT_OK_AND_ASSIGN(
        const Matrix server,
        SmlqIterate(settings.start_stddev * server_graph.CodeOfRows(settings.embedding_dim),
                    TiledAffinity(server_features, c), server_graph, settings.alpha, settings.steps,
                    settings.normalise));
    ExpectSame(server, MatrixFrom(run.at("server")));
  }
}

TEST(UmeyamaGolden, SimilarityAndReflectionMatchReference) {
  ASSERT_EQ(Golden().at("umeyama").size(), 2u);
  for (const json& golden : Golden().at("umeyama")) {
    ASSERT_OK_AND_ASSIGN(const auto map, KabschUmeyama(MatrixFrom(golden.at("source")),
                                                       MatrixFrom(golden.at("target"))));
    ExpectSame(map.scale, golden.at("scale"));
    ExpectSame(map.rotation, MatrixFrom(golden.at("rotation")));
    ExpectSame(map.translation, MatrixFrom(json::array({golden.at("translation")})));
  }
}

}  // namespace
}  // namespace privatemail
