#include "common/wire/embedding_settings_proto.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

absl::StatusOr<KernelConvention> FromProto(v1::Kernel kernel) {
  switch (kernel) {
    case v1::KERNEL_TWO_SIGMA_SQUARED:
      return KernelConvention::kTwoSigmaSquared;
    case v1::KERNEL_SIGMA:
      return KernelConvention::kSigma;
    case v1::KERNEL_SIGMA_SQUARED:
      return KernelConvention::kSigmaSquared;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "settings.kernel must be 1 (two_sigma_squared), 2 (sigma) or 3 (sigma_squared), but is ",
          static_cast<int>(kernel)));
  }
}

absl::StatusOr<LabelGraphKind> FromProto(v1::LabelGraph graph) {
  switch (graph) {
    case v1::LABEL_GRAPH_DISTANCE:
      return LabelGraphKind::kDistance;
    case v1::LABEL_GRAPH_KERNEL:
      return LabelGraphKind::kKernel;
    case v1::LABEL_GRAPH_ONE_HOT_KERNEL:
      return LabelGraphKind::kOneHotKernel;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "settings.label_graph must be 1 (distance), 2 (kernel) or 3 (one_hot_kernel), but is ",
          static_cast<int>(graph)));
  }
}

}  // namespace

v1::Kernel ToProto(KernelConvention kernel) {
  switch (kernel) {
    case KernelConvention::kTwoSigmaSquared:
      return v1::KERNEL_TWO_SIGMA_SQUARED;
    case KernelConvention::kSigma:
      return v1::KERNEL_SIGMA;
    case KernelConvention::kSigmaSquared:
      return v1::KERNEL_SIGMA_SQUARED;
  }
  __builtin_unreachable();
}

v1::LabelGraph ToProto(LabelGraphKind graph) {
  switch (graph) {
    case LabelGraphKind::kDistance:
      return v1::LABEL_GRAPH_DISTANCE;
    case LabelGraphKind::kKernel:
      return v1::LABEL_GRAPH_KERNEL;
    case LabelGraphKind::kOneHotKernel:
      return v1::LABEL_GRAPH_ONE_HOT_KERNEL;
  }
  __builtin_unreachable();
}

void ToProto(const EmbeddingSettings& settings, v1::EmbeddingSettings* proto) {
  proto->set_kernel_bandwidth(settings.kernel_bandwidth);
  proto->set_alpha(settings.alpha);
  proto->set_kernel(ToProto(settings.kernel));
  proto->set_label_graph(ToProto(settings.label_graph));
  proto->set_embedding_dim(static_cast<uint32_t>(settings.embedding_dim));
  proto->set_steps(static_cast<uint32_t>(settings.steps));
  proto->set_normalise(settings.normalise);
  proto->set_start_stddev(settings.start_stddev);
}

absl::StatusOr<EmbeddingSettings> FromProto(const v1::EmbeddingSettings& proto) {
  EmbeddingSettings settings;
  settings.kernel_bandwidth = proto.kernel_bandwidth();
  settings.alpha = proto.alpha();
  PM_ASSIGN_OR_RETURN(settings.kernel, FromProto(proto.kernel()));
  PM_ASSIGN_OR_RETURN(settings.label_graph, FromProto(proto.label_graph()));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("embedding_dim", proto.embedding_dim(), 1, 1024));
  settings.embedding_dim = static_cast<int>(proto.embedding_dim());
  PM_RETURN_IF_ERROR(CheckIntegerBetween("steps", proto.steps(), 1, 10000));
  settings.steps = static_cast<int>(proto.steps());
  settings.normalise = proto.normalise();
  settings.start_stddev = proto.start_stddev();
  PM_RETURN_IF_ERROR(Validate(settings));
  return settings;
}

}  // namespace privatemail
