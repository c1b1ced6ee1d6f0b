#include "common/wire/proto_conversions.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"
#include "common/items/item_checks.h"

namespace privatemail {
namespace {

constexpr double kHundredths = 100, kThousandths = 1000;

char ToByte(double share, double unit) {
  return static_cast<char>(static_cast<unsigned char>(std::lround(share * unit)));
}

double FromByte(char byte, double unit) {
  return static_cast<double>(static_cast<unsigned char>(byte)) / unit;
}

void EncodeCurves(const std::vector<MeasuredQuality>& means, v1::QualityCurves* proto) {
  for (const auto& [fidelity, recall] : means) {
    proto->mutable_fidelity()->push_back(ToByte(fidelity.value, kHundredths));
    proto->mutable_fidelity_error()->push_back(ToByte(fidelity.standard_error, kThousandths));
    proto->mutable_recall()->push_back(ToByte(recall.value, kHundredths));
    proto->mutable_recall_error()->push_back(ToByte(recall.standard_error, kThousandths));
  }
}

absl::StatusOr<std::vector<MeasuredQuality>> DecodeCurves(absl::string_view field,
                                                          const v1::QualityCurves& proto) {
  const size_t count = proto.fidelity().size();
  for (const std::string* bytes :
       {&proto.fidelity_error(), &proto.recall(), &proto.recall_error()}) {
    if (bytes->size() == count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must have curves of ", count, " bytes, but one has ", bytes->size()));
  }
  std::vector<MeasuredQuality> means;
  for (size_t i = 0; i < count; ++i) {
    means.push_back({.fidelity = {FromByte(proto.fidelity()[i], kHundredths),
                                  FromByte(proto.fidelity_error()[i], kThousandths)},
                     .recall = {FromByte(proto.recall()[i], kHundredths),
                                FromByte(proto.recall_error()[i], kThousandths)}});
  }
  return means;
}

// The enums of both sides have the same numbers, so that conversions are casts.
static_assert(static_cast<int>(KernelConvention::kTwoSigmaSquared) == v1::KERNEL_TWO_SIGMA_SQUARED);
static_assert(static_cast<int>(KernelConvention::kSigma) == v1::KERNEL_SIGMA);
static_assert(static_cast<int>(KernelConvention::kSigmaSquared) == v1::KERNEL_SIGMA_SQUARED);
static_assert(static_cast<int>(LabelGraphKind::kDistance) == v1::LABEL_GRAPH_DISTANCE);
static_assert(static_cast<int>(LabelGraphKind::kKernel) == v1::LABEL_GRAPH_KERNEL);
static_assert(static_cast<int>(LabelGraphKind::kOneHotKernel) == v1::LABEL_GRAPH_ONE_HOT_KERNEL);
static_assert(static_cast<int>(LabelGraphKind::kBalanced) == v1::LABEL_GRAPH_BALANCED);
static_assert(static_cast<int>(StartKind::kRandom) == v1::START_RANDOM);
static_assert(static_cast<int>(StartKind::kClasses) == v1::START_CLASSES);
static_assert(static_cast<int>(CellCode::kFloat16) == v1::CELL_CODE_FLOAT16);
static_assert(static_cast<int>(CellCode::kScalar8) == v1::CELL_CODE_SCALAR8);
static_assert(static_cast<int>(CellCode::kPq8) == v1::CELL_CODE_PQ8);
static_assert(static_cast<int>(CellCode::kPq16) == v1::CELL_CODE_PQ16);
static_assert(static_cast<int>(CellCode::kPq32) == v1::CELL_CODE_PQ32);
static_assert(static_cast<int>(CellCode::kPq64) == v1::CELL_CODE_PQ64);
static_assert(static_cast<int>(Metric::kCosine) == v1::METRIC_COSINE);
static_assert(static_cast<int>(Metric::kDot) == v1::METRIC_DOT);
static_assert(static_cast<int>(Metric::kEuclidean) == v1::METRIC_EUCLIDEAN);

// An enum value from 1 to that of `last`. choices: "1 (a), 2 (b) or 3 (c)".
template <typename Enum, typename ProtoEnum>
absl::StatusOr<Enum> EnumFromProto(absl::string_view field, ProtoEnum value, Enum last,
                                   absl::string_view choices) {
  if (value >= 1 && static_cast<int>(value) <= static_cast<int>(last)) {
    return static_cast<Enum>(value);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be ", choices, ", but is ", static_cast<int>(value)));
}

}  // namespace

void ToProto(const FloatMatrix& matrix, v1::Matrix* proto) {
  proto->set_rows(static_cast<uint32_t>(matrix.rows()));
  proto->set_cols(static_cast<uint32_t>(matrix.cols()));
  proto->mutable_values()->Assign(matrix.data(), matrix.data() + matrix.size());
}

void ToProto(const Matrix& matrix, v1::Matrix* proto) {
  ToProto(FloatMatrix(matrix.cast<float>()), proto);
}

absl::StatusOr<FloatView> ViewOf(absl::string_view field, const v1::Matrix& proto) {
  const auto rows = static_cast<int64_t>(proto.rows());
  const auto cols = static_cast<int64_t>(proto.cols());
  if (rows == 0 || cols == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must have rows and columns, but is ", rows, " x ", cols));
  }
  if (rows > kMaxMatrixValues / cols) {
    return absl::ResourceExhaustedError(absl::StrCat(field, " is ", rows, " x ", cols,
                                                     ", more than the limit of ", kMaxMatrixValues,
                                                     " values"));
  }
  if (proto.values_size() != rows * cols) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, " has ", rows, " rows of ", cols, " columns but ", proto.values_size(), " values"));
  }
  const FloatView matrix(proto.values().data(), rows, cols);
  if (matrix.allFinite()) return matrix;
  const auto& values = proto.values();
  const auto wrong = std::find_if_not(values.begin(), values.end(),
                                      [](float value) { return std::isfinite(value); });
  const int64_t i = wrong - values.begin();
  return absl::InvalidArgumentError(absl::StrCat(field, " row ", i / cols, ": value in column ",
                                                 i % cols, " is ", *wrong,
                                                 ", expected finite values"));
}

absl::StatusOr<FloatMatrix> FromProto(absl::string_view field, const v1::Matrix& proto) {
  PM_ASSIGN_OR_RETURN(const FloatView view, ViewOf(field, proto));
  return FloatMatrix(view);
}

void LabelToProto(int32_t label, v1::Item* proto) {
  proto->set_unlabelled(label == kNoLabel);
  proto->set_label(label == kNoLabel ? 0 : label);
}

absl::StatusOr<int32_t> LabelFromProto(const v1::Item& proto) {
  if (proto.unlabelled()) {
    if (proto.label() == 0) return kNoLabel;
    return InvalidField("label",
                        absl::StrCat("must be 0 where unlabelled is set, but is ", proto.label()));
  }
  if (proto.label() != kNoLabel) return proto.label();
  return InvalidField("label", absl::StrCat("must not be ", kNoLabel,
                                            ": set unlabelled for an item without a label"));
}

void ToProto(const CellQuality& quality, v1::CellQuality* proto) {
  proto->set_queries(static_cast<uint32_t>(quality.queries));
  proto->mutable_items()->Assign(quality.items.begin(), quality.items.end());
  proto->mutable_epsilons()->Assign(quality.epsilons.begin(), quality.epsilons.end());
  for (const PartitionQuality& partition : quality.partitions) {
    v1::PartitionQuality* one = proto->add_partitions();
    EncodeCurves(partition.own, one->mutable_own());
    EncodeCurves(partition.other, one->mutable_other());
  }
}

absl::StatusOr<CellQuality> FromProto(const v1::CellQuality& proto, size_t partitions) {
  CellQuality quality{.queries = proto.queries(),
                      .items = {proto.items().begin(), proto.items().end()},
                      .epsilons = {proto.epsilons().begin(), proto.epsilons().end()},
                      .partitions = {}};
  for (const v1::PartitionQuality& partition : proto.partitions()) {
    PartitionQuality& one = quality.partitions.emplace_back();
    PM_ASSIGN_OR_RETURN(one.own, DecodeCurves("quality.partitions.own", partition.own()));
    PM_ASSIGN_OR_RETURN(one.other, DecodeCurves("quality.partitions.other", partition.other()));
  }
  PM_RETURN_IF_ERROR(Validate(quality, partitions));
  return quality;
}

v1::CellCode ToProto(CellCode code) { return static_cast<v1::CellCode>(code); }

absl::StatusOr<CellCode> FromProto(v1::CellCode code) {
  return EnumFromProto("cell_code", code, CellCode::kPq64,
                       "1 (float16), 2 (scalar8) or 3 to 6 (pq8 to pq64)");
}

v1::Metric ToProto(Metric metric) { return static_cast<v1::Metric>(metric); }

absl::StatusOr<Metric> FromProto(v1::Metric metric) {
  return EnumFromProto("metric", metric, Metric::kEuclidean,
                       "1 (cosine), 2 (dot) or 3 (euclidean)");
}

void ToProto(const EmbeddingSettings& settings, v1::EmbeddingSettings* proto) {
  proto->set_kernel_bandwidth(settings.kernel_bandwidth);
  proto->set_alpha(settings.alpha);
  proto->set_kernel(static_cast<v1::Kernel>(settings.kernel));
  proto->set_label_graph(static_cast<v1::LabelGraph>(settings.label_graph));
  proto->set_embedding_dim(static_cast<uint32_t>(settings.embedding_dim));
  proto->set_steps(static_cast<uint32_t>(settings.steps));
  proto->set_normalise(settings.normalise);
  proto->set_start_stddev(settings.start_stddev);
  proto->set_start(static_cast<v1::Start>(settings.start));
}

absl::StatusOr<EmbeddingSettings> FromProto(const v1::EmbeddingSettings& proto) {
  EmbeddingSettings settings;
  settings.kernel_bandwidth = proto.kernel_bandwidth();
  settings.alpha = proto.alpha();
  PM_ASSIGN_OR_RETURN(
      settings.kernel,
      EnumFromProto("settings.kernel", proto.kernel(), KernelConvention::kSigmaSquared,
                    "1 (two_sigma_squared), 2 (sigma) or 3 (sigma_squared)"));
  PM_ASSIGN_OR_RETURN(
      settings.label_graph,
      EnumFromProto("settings.label_graph", proto.label_graph(), LabelGraphKind::kBalanced,
                    "1 (distance), 2 (kernel), 3 (one_hot_kernel) or 4 (balanced)"));
  PM_ASSIGN_OR_RETURN(settings.start,
                      EnumFromProto("settings.start", proto.start(), StartKind::kClasses,
                                    "1 (random) or 2 (classes)"));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("embedding_dim", proto.embedding_dim(), 1, 1024));
  settings.embedding_dim = static_cast<int>(proto.embedding_dim());
  PM_RETURN_IF_ERROR(CheckIntegerBetween("steps", proto.steps(), 1, 10000));
  settings.steps = static_cast<int>(proto.steps());
  settings.normalise = proto.normalise();
  settings.start_stddev = proto.start_stddev();
  PM_RETURN_IF_ERROR(Validate(settings));
  return settings;
}

void ToProto(const PublicParameters& parameters, v1::PublicParameters* proto) {
  proto->set_collection_uuid(parameters.collection_uuid);
  if (parameters.HasAnchors()) ToProto(parameters.settings, proto->mutable_settings());
  proto->set_feature_dim(static_cast<uint32_t>(parameters.feature_dim));
  proto->set_extractor(parameters.extractor);
  proto->mutable_slot_labels()->Assign(parameters.slot_labels.begin(),
                                       parameters.slot_labels.end());
  proto->mutable_class_names()->Assign(parameters.class_names.begin(),
                                       parameters.class_names.end());
  proto->set_anchor_count(static_cast<uint32_t>(parameters.anchor_count));
  proto->set_anchor_digest(parameters.anchor_digest);
  for (const CellPartition& partition : parameters.cell_partitions) {
    v1::CellPartition* one = proto->add_cell_partitions();
    one->set_cells(static_cast<uint32_t>(partition.cells));
    one->mutable_cell_of_anchor()->Assign(partition.cell_of_anchor.begin(),
                                          partition.cell_of_anchor.end());
  }
  if (parameters.cell_code) proto->set_cell_code(ToProto(*parameters.cell_code));
  if (parameters.cell_codebook) {
    v1::CellCodebook* codebook = proto->mutable_cell_codebook();
    ToProto(parameters.cell_codebook->centroids, codebook->mutable_centroids());
    codebook->set_relative_squared_error(parameters.cell_codebook->relative_squared_error);
  }
  proto->set_publish_quality(parameters.publish_quality);
  proto->set_metric(ToProto(parameters.metric));
  proto->set_with_encrypted(parameters.with_encrypted);
}

std::vector<std::string> OfferedSchemes(const v1::PublicParameters& proto) {
  const absl::StatusOr<PublicParameters> parameters = FromProto(proto);
  return parameters.ok() ? OfferedSchemes(*parameters) : std::vector<std::string>();
}

absl::StatusOr<PublicParameters> FromProto(const v1::PublicParameters& proto) {
  PublicParameters parameters;
  parameters.collection_uuid = proto.collection_uuid();
  const bool has_anchors = proto.anchor_count() > 0;
  if (has_anchors) {
    PM_ASSIGN_OR_RETURN(parameters.settings, FromProto(proto.settings()));
  } else if (proto.has_settings()) {
    return InvalidField("settings", "must not be given where there are no anchors");
  }
  PM_RETURN_IF_ERROR(CheckIntegerBetween("feature_dim", proto.feature_dim(), has_anchors ? 1 : 0,
                                         int64_t{1} << 20));
  parameters.feature_dim = proto.feature_dim();
  parameters.extractor = proto.extractor();
  parameters.slot_labels.assign(proto.slot_labels().begin(), proto.slot_labels().end());
  parameters.class_names.assign(proto.class_names().begin(), proto.class_names().end());
  parameters.anchor_count = proto.anchor_count();
  parameters.anchor_digest = proto.anchor_digest();
  for (const v1::CellPartition& partition : proto.cell_partitions()) {
    parameters.cell_partitions.push_back(
        {.cells = partition.cells(),
         .cell_of_anchor = {partition.cell_of_anchor().begin(), partition.cell_of_anchor().end()}});
  }
  if (proto.cell_code() != v1::CELL_CODE_UNSPECIFIED) {
    PM_ASSIGN_OR_RETURN(parameters.cell_code, FromProto(proto.cell_code()));
  }
  if (proto.has_cell_codebook()) {
    ProductCodebook& codebook = parameters.cell_codebook.emplace();
    PM_ASSIGN_OR_RETURN(codebook.centroids,
                        FromProto("cell_codebook.centroids", proto.cell_codebook().centroids()));
    // Without a product code Validate refuses any codebook.
    codebook.parts =
        PartsOf(parameters.cell_code.value_or(CellCode::kScalar8), codebook.centroids_per_part());
    codebook.relative_squared_error = proto.cell_codebook().relative_squared_error();
  }
  parameters.publish_quality = proto.publish_quality();
  PM_ASSIGN_OR_RETURN(parameters.metric, FromProto(proto.metric()));
  parameters.with_encrypted = proto.with_encrypted();
  PM_RETURN_IF_ERROR(Validate(parameters));
  return parameters;
}

}  // namespace privatemail
