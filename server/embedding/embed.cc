#include "server/embedding/embed.h"

#include <cmath>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/alignment.h"
#include "common/numerics/label_graph.h"

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

absl::StatusOr<EmbeddedRows> EmbedRows(const PublicParameters& parameters,
                                       std::shared_ptr<const PointSource> rows,
                                       const std::vector<int32_t>& labels,
                                       const StepObserver& observer) {
  const EmbeddingSettings& settings = parameters.settings;
  const double denominator = settings.KernelDenominator();
  EmbeddedRows result;
  result.plan = PlanAffinity({.rows = rows->rows(),
                              .cols = rows->cols(),
                              .kernel_denominator = denominator,
                              .columns = settings.embedding_dim,
                              .most_squared_length = kUnitSquaredLength,
                              .tolerance = kEmbeddingTolerance});
  const auto feature_graph = MakeAffinity(result.plan, std::move(rows), denominator);
  const LabelGraph label_graph(labels, settings.label_graph, denominator);
  Vector degrees;
  PM_ASSIGN_OR_RETURN(result.coordinates,
                      SmlqIterate(DeterministicStart(Fingerprint(parameters), feature_graph->size(),
                                                     settings.embedding_dim, settings.start_stddev),
                                  *feature_graph, label_graph, settings.alpha, settings.steps,
                                  settings.normalise, observer, &degrees));
  const ProductObserver watch = [&](double) { return observer(settings.steps, settings.steps); };
  PM_ASSIGN_OR_RETURN(result.objective,
                      SmlqObjective(result.coordinates, *feature_graph, degrees, label_graph,
                                    settings.alpha, observer ? OncePerSecond(watch) : nullptr));
  return result;
}

absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, const StepObserver& observer) {
  PM_ASSIGN_OR_RETURN(UnitPoints rows,
                      UnitPoints::Create(std::move(gallery.features), anchors.features));
  return Embed(parameters, anchors, std::move(gallery),
               std::make_shared<UnitPoints>(std::move(rows)), observer);
}

absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, std::shared_ptr<const PointSource> points,
                                const StepObserver& observer) {
  const auto items = static_cast<Eigen::Index>(gallery.ids.size());
  if (items == 0) {
    return absl::FailedPreconditionError("the collection has no items to embed: ingest some first");
  }
  // The features, which are the largest of all, are gone before the results are copied.
  PM_ASSIGN_OR_RETURN(EmbeddedRows rows,
                      EmbedRows(parameters, std::move(points),
                                Concatenate(gallery.labels, anchors.labels), observer));

  Embedding embedding;
  embedding.plan = std::move(rows.plan.why);
  embedding.items_version = gallery.version;
  embedding.collection = gallery.collection;
  embedding.objective = rows.objective;
  embedding.ids = std::move(gallery.ids);
  embedding.labels = std::move(gallery.labels);
  embedding.payloads = std::move(gallery.payloads);
  embedding.coordinates = rows.coordinates.topRows(items);
  embedding.anchor_coordinates = rows.coordinates.bottomRows(rows.coordinates.rows() - items);
  // Nothing can be aligned with anchors on a line, and each query would learn so only after it has
  // spent its budget.
  PM_RETURN_IF_ERROR(KabschUmeyama(embedding.anchor_coordinates, embedding.anchor_coordinates,
                                   /*with_scale=*/true)
                         .status());
  return embedding;
}

}  // namespace privatemail
