#include "client/privacy/sensitivity/published_release_sensitivity.h"

#include "absl/status/status.h"
#include "client/privacy/sensitivity/published_gaussian_sensitivity.h"
#include "client/privacy/sensitivity/published_laplace_sensitivity.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

absl::Status CheckPrintedKernel(const EmbeddingSettings& settings) {
  if (settings.kernel == KernelConvention::kTwoSigmaSquared) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the papers print their bounds for the kernel two_sigma_squared only, but these settings "
      "have another");
}

}  // namespace

absl::StatusOr<double> SecondPapersSensitivity(const EmbeddingSettings& settings,
                                               const IterationInputs& inputs) {
  PM_RETURN_IF_ERROR(CheckPrintedKernel(settings));
  PM_ASSIGN_OR_RETURN(
      const PublishedGaussianBound bound,
      PublishedGaussianSensitivity(inputs.start.rows(), inputs.alpha, settings.kernel_bandwidth,
                                   inputs.slots - 1, inputs.start.norm()));
  return bound.sensitivity_as_printed;
}

absl::StatusOr<double> FirstPapersSensitivity(const EmbeddingSettings& settings,
                                              const IterationInputs& inputs) {
  PM_RETURN_IF_ERROR(CheckPrintedKernel(settings));
  const auto n = static_cast<int64_t>(inputs.start.rows());
  const auto k = static_cast<int64_t>(inputs.start.cols());
  PM_ASSIGN_OR_RETURN(
      const PublishedLaplaceConstants constants,
      settings.label_graph == LabelGraphKind::kOneHotKernel
          ? PublishedLaplaceOneHot(n, inputs.alpha, settings.kernel_bandwidth)
          : PublishedLaplaceInteger(n, inputs.alpha, settings.kernel_bandwidth, inputs.slots - 1));
  PM_ASSIGN_OR_RETURN(const double ln_beta, PublishedLaplaceLnBeta(n, k));
  return PublishedLaplaceSensitivity(constants, n, k, ln_beta, settings.start_stddev);
}

}  // namespace privatemail::client
