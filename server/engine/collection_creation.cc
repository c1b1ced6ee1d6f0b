#include "server/engine/collection_creation.h"

#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/background_queue.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/embed_rows.h"
#include "server/cells/anchor_training.h"
#include "server/store/types.h"

namespace privatemail::server {
namespace {

// Settings under which even the anchors alone cannot be aligned would be refused by every build.
absl::Status CheckAnchorsAlign(const PublicParameters& parameters, const Anchors& anchors,
                               const CancelledFunction& cancelled) {
  constexpr double kMaxOperations = 3e10;  // some seconds; beyond that the build checks
  const Eigen::Index rows = anchors.features.rows();
  const bool factored = PlanEmbedding(parameters, rows).kind == AffinityPlan::Kind::kFactored;
  const auto columns = static_cast<double>(parameters.feature_dim);
  const double operations = parameters.settings.steps * static_cast<double>(rows) * columns *
                            (factored ? columns : static_cast<double>(rows));
  if (operations > kMaxOperations) return absl::OkStatus();
  PM_ASSIGN_OR_RETURN(Matrix units, UnitRows("anchors", anchors.features));
  absl::StatusOr<EmbeddedRows> embedded;
  RunAtLowPriority([&] {
    embedded = EmbedRows(parameters, std::make_shared<MatrixPoints>(std::move(units)),
                         anchors.labels, [&](double, int) { return CheckNotCancelled(cancelled); });
  });
  const absl::Status aligned =
      embedded.ok() ? CheckAnchorCoordinates(embedded->coordinates) : embedded.status();
  if (aligned.ok() || absl::IsCancelled(aligned)) return aligned;
  return absl::FailedPreconditionError(absl::StrCat(
      "settings do not suit the anchors: ", aligned.message(),
      "; use fewer steps or a larger alpha, or the label graph balanced with the start classes"));
}

absl::StatusOr<StoredCollection> PrepareWithoutAnchors(NewCollection collection, std::string uuid) {
  const auto unexpected = [](absl::string_view field) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must not be given where there are no anchors"));
  };
  if (!collection.anchors.labels.empty()) return unexpected("anchor_labels");
  if (!collection.cells.empty()) return unexpected("cells");
  if (collection.publish_quality) return unexpected("publish_quality");
  StoredCollection stored;
  stored.name = std::move(collection.name);
  PM_ASSIGN_OR_RETURN(stored.parameters, MakeParametersWithoutAnchors(
                                             std::move(uuid), std::move(collection.extractor),
                                             collection.metric, std::move(collection.class_names)));
  return stored;
}

}  // namespace

absl::Status CheckCollectionName(absl::string_view name) {
  bool valid =
      !name.empty() && name.size() <= kMaxCollectionNameBytes && absl::ascii_isalnum(name[0]);
  for (const char c : name) {
    valid = valid && (absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-');
  }
  if (valid) return absl::OkStatus();
  return InvalidField(
      "name",
      absl::StrCat("must be 1 to ", kMaxCollectionNameBytes,
                   " letters, digits, '.', '_' and '-', the first a letter or a digit, but is '",
                   absl::CHexEscape(name.substr(0, 2 * kMaxCollectionNameBytes)), "'"));
}

absl::StatusOr<StoredCollection> PrepareCollection(NewCollection collection,
                                                   const CancelledFunction& cancelled) {
  PM_RETURN_IF_ERROR(CheckCellCode(!collection.cells.empty(), collection.cell_code.has_value()));
  PM_ASSIGN_OR_RETURN(std::string uuid, NewUuid());
  if (collection.anchors.features.rows() == 0) {
    return PrepareWithoutAnchors(std::move(collection), std::move(uuid));
  }
  std::vector<CellPartition> partitions;
  std::optional<ProductCodebook> codebook;
  if (!collection.cells.empty()) {
    PM_ASSIGN_OR_RETURN(const Matrix units, UnitRows("anchors", collection.anchors.features));
    const auto train = [&]() -> absl::Status {
      const FloatMatrix rows = units.cast<float>();
      PM_ASSIGN_OR_RETURN(partitions, PartitionAnchors(rows, collection.cells, cancelled));
      if (!IsProductCode(*collection.cell_code)) return absl::OkStatus();
      PM_ASSIGN_OR_RETURN(codebook, TrainCodebook(rows, *collection.cell_code, cancelled));
      return absl::OkStatus();
    };
    absl::Status trained;
    RunAtLowPriority([&] { trained = train(); });
    PM_RETURN_IF_ERROR(trained);
  }
  PM_ASSIGN_OR_RETURN(
      PublicParameters parameters,
      MakePublicParameters(std::move(uuid), collection.settings, collection.anchors,
                           std::move(collection.class_names), std::move(collection.extractor),
                           std::move(partitions), collection.cell_code, std::move(codebook)));
  parameters.publish_quality = collection.publish_quality;
  parameters.metric = collection.metric;
  parameters.with_encrypted = collection.with_encrypted;
  PM_RETURN_IF_ERROR(Validate(parameters));
  PM_RETURN_IF_ERROR(CheckAnchorsAlign(parameters, collection.anchors, cancelled));
  StoredCollection stored;
  stored.name = std::move(collection.name);
  stored.parameters = std::move(parameters);
  stored.anchors = std::move(collection.anchors);
  return stored;
}

// Checksums show that the blocks are as they were written, not that they were consistent.
absl::Status CheckSnapshotParameters(const StoredCollection& collection) {
  const PublicParameters& given = collection.parameters;
  absl::StatusOr<PublicParameters> made =
      given.HasAnchors()
          ? MakePublicParameters(given.collection_uuid, given.settings, collection.anchors,
                                 given.class_names, given.extractor, given.cell_partitions,
                                 given.cell_code, given.cell_codebook)
          : MakeParametersWithoutAnchors(given.collection_uuid, given.extractor, given.metric,
                                         given.class_names);
  if (!made.ok()) return absl::DataLossError(absl::StrCat("snapshot: ", made.status().message()));
  if (!given.HasAnchors()) made->feature_dim = given.feature_dim;
  made->publish_quality = given.publish_quality;
  made->metric = given.metric;
  made->with_encrypted = given.with_encrypted;
  if (Fingerprint(*made) == Fingerprint(given)) return absl::OkStatus();
  return absl::DataLossError("snapshot: its parameters are not those of its anchors");
}

}  // namespace privatemail::server
