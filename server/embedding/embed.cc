#include "server/embedding/embed.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/alignment.h"
#include "common/numerics/label_graph.h"
#include "common/numerics/point_source.h"
#include "common/numerics/tiled_affinity.h"

namespace privatemail {
namespace {

// In (0, 1], so that its logarithm is finite.
double Uniform(std::mt19937_64& bits) { return (static_cast<double>(bits() >> 11) + 1) * 0x1p-53; }

std::vector<int32_t> Concatenate(const std::vector<int32_t>& first,
                                 const std::vector<int32_t>& second) {
  std::vector<int32_t> all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

}  // namespace

Matrix DeterministicStart(absl::string_view fingerprint, Eigen::Index n, Eigen::Index k,
                          double stddev) {
  // Bytes as they are, whatever the sign of char.
  const std::vector<unsigned char> seed_bytes(fingerprint.begin(), fingerprint.end());
  std::seed_seq seed(seed_bytes.begin(), seed_bytes.end());
  std::mt19937_64 bits(seed);
  Matrix start(n, k);
  // std::normal_distribution differs between libraries; this is the same everywhere.
  for (Eigen::Index i = 0; i < start.size(); i += 2) {
    const double radius = stddev * std::sqrt(-2 * std::log(Uniform(bits)));
    const double angle = 2 * std::numbers::pi * Uniform(bits);
    start.data()[i] = radius * std::cos(angle);
    if (i + 1 < start.size()) start.data()[i + 1] = radius * std::sin(angle);
  }
  return start;
}

absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, const StepObserver& observer) {
  const Eigen::Index items = gallery.features.rows();
  if (items == 0) {
    return absl::FailedPreconditionError("the collection has no items to embed: ingest some first");
  }
  const EmbeddingSettings& settings = parameters.settings;
  PM_ASSIGN_OR_RETURN(UnitPoints unit_points,
                      UnitPoints::Create(gallery.features, anchors.features));
  const auto points = std::make_shared<UnitPoints>(std::move(unit_points));
  const Eigen::Index n = points->rows();

  const TiledAffinity feature_graph(points, settings.KernelDenominator());
  const LabelGraph label_graph(Concatenate(gallery.labels, anchors.labels), settings.label_graph,
                               settings.KernelDenominator());
  Vector degrees;
  PM_ASSIGN_OR_RETURN(const Matrix z,
                      SmlqIterate(DeterministicStart(Fingerprint(parameters), n,
                                                     settings.embedding_dim, settings.start_stddev),
                                  feature_graph, label_graph, settings.alpha, settings.steps,
                                  settings.normalise, observer, &degrees));
  PM_ASSIGN_OR_RETURN(const double objective,
                      SmlqObjective(z, feature_graph, degrees, label_graph, settings.alpha));
  Embedding embedding;
  embedding.items_version = gallery.version;
  embedding.collection = gallery.collection;
  embedding.objective = objective;
  embedding.ids = std::move(gallery.ids);
  embedding.labels = std::move(gallery.labels);
  embedding.payloads = std::move(gallery.payloads);
  embedding.coordinates = z.topRows(items);
  embedding.anchor_coordinates = z.bottomRows(n - items);
  // Nothing can be aligned with anchors on a line, and each query would learn so only after it has
  // spent its budget.
  PM_RETURN_IF_ERROR(KabschUmeyama(embedding.anchor_coordinates, embedding.anchor_coordinates,
                                   /*with_scale=*/true)
                         .status());
  return embedding;
}

}  // namespace privatemail
