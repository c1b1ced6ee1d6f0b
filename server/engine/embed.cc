#include "server/engine/embed.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace privatemail::server {

absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, const StepObserver& observer,
                                std::shared_ptr<const PointSource> points) {
  const auto items = static_cast<Eigen::Index>(gallery.ids.size());
  if (points == nullptr) {
    PM_ASSIGN_OR_RETURN(UnitPoints rows,
                        UnitPoints::Create(std::move(gallery.features), anchors.features));
    points = std::make_shared<UnitPoints>(std::move(rows));
  }
  std::vector<int32_t> labels = gallery.labels;
  labels.insert(labels.end(), anchors.labels.begin(), anchors.labels.end());
  // The features, which are the largest of all, are gone before the results are copied.
  PM_ASSIGN_OR_RETURN(EmbeddedRows rows,
                      EmbedRows(parameters, std::move(points), labels, observer));

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
  PM_RETURN_IF_ERROR(CheckAnchorCoordinates(embedding.anchor_coordinates));
  return embedding;
}

}  // namespace privatemail::server
