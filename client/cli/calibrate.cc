#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/flags/numbers.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client::cli {
namespace {

struct CalibrateOptions {
  std::string mechanism;
  MechanismParameters parameters;
  std::optional<double> delta;
  std::optional<double> sensitivity;
  std::optional<double> radius;
  std::optional<double> lipschitz;
  std::optional<int64_t> dimension;
};

// The number of values with noise. It matters where the radius's norm differs from the noise's, and
// in a box.
absl::StatusOr<int64_t> ValueCount(const CalibrateOptions& options) {
  const MechanismTraits& traits = TraitsOf(options.parameters.kind);
  const bool on_input = traits.protects == MechanismTraits::Protects::kInput;
  const bool boxed = traits.law == MechanismTraits::Law::kBoundedGaussian;
  if (options.dimension.has_value()) {
    if (!on_input && !boxed) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension is of no use to ", traits.name, ": expected none"));
    }
    PM_RETURN_IF_ERROR(CheckIntegerBetween("dimension", *options.dimension, 1, int64_t{1} << 40));
    return *options.dimension;
  }
  if (on_input) {
    return absl::InvalidArgumentError(absl::StrCat("dimension must be given for ", traits.name,
                                                   ": expected --dimension D, the "
                                                   "number of coordinates of the input"));
  }
  return std::max<int64_t>(static_cast<int64_t>(options.parameters.box.lower.size()), 1);
}

// Rounded up.
absl::StatusOr<double> VarianceOf(double stddev) {
  const double variance = std::nextafter(stddev * stddev, std::numeric_limits<double>::infinity());
  if (std::isnormal(variance)) return variance;
  return absl::InvalidArgumentError(
      absl::StrCat("the noise's variance must be a normal number, but the standard deviation ",
                   FormatExact(stddev), " makes it ", variance));
}

absl::StatusOr<Result> Calibrate(const Context&, CalibrateOptions options) {
  MechanismParameters& parameters = options.parameters;
  PM_ASSIGN_OR_RETURN(parameters.kind, MechanismFromName(options.mechanism));
  PM_RETURN_IF_ERROR(CopyNumber("delta", options.delta, &parameters.delta));
  PM_RETURN_IF_ERROR(CopyNumber("sensitivity", options.sensitivity, &parameters.sensitivity));
  PM_RETURN_IF_ERROR(CopyNumber("radius", options.radius, &parameters.ball.radius));
  PM_RETURN_IF_ERROR(CopyNumber("Lipschitz constant", options.lipschitz, &parameters.lipschitz));
  PM_ASSIGN_OR_RETURN(const int64_t values, ValueCount(options));
  PM_ASSIGN_OR_RETURN(const Calibration noise, client::Calibrate(parameters, values));
  PM_ASSIGN_OR_RETURN(const double variance, VarianceOf(noise.stddev));
  const Guarantee& guarantee = noise.guarantee;
  return Result{.json = {{"stddev", noise.stddev},
                         {"variance", variance},
                         {"guarantee", ToJson(guarantee)},
                         {"proven", guarantee.proven}},
                .text = absl::StrCat(
                    "standard deviation ", FormatExact(noise.stddev), "\nvariance ",
                    FormatExact(variance), "\nepsilon ", FormatExact(guarantee.epsilon), ", delta ",
                    FormatExact(guarantee.delta), ": ", guarantee.neighbours, "\n",
                    guarantee.proven ? "proven: " : "NOT PROVEN: ", guarantee.source, "\n")};
}

}  // namespace

void AddCalibrateCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<CalibrateOptions>();
  MechanismParameters& p = options->parameters;
  CLI::App* calibrate = AddCommand(app, "calibrate", "Compute the noise that a guarantee needs");
  calibrate->add_option("--mechanism", options->mechanism, MechanismNames())->required();
  calibrate->add_option("--epsilon", p.epsilon, "Epsilon of the guarantee")->required();
  calibrate->add_option("--delta", options->delta,
                        "Delta of the guarantee, for the Gaussian mechanisms");
  calibrate->add_option(
      "--sensitivity", options->sensitivity,
      "Sensitivity of the value: L1 for laplace, else L2; not for Inference Privacy");
  AddNumbers(
      calibrate, "--lower", &p.box.lower,
      "Lower ends of the box of a bounded mechanism, separated by commas; values outside are "
      "clipped");
  AddNumbers(calibrate, "--upper", &p.box.upper, "Upper ends of the box");
  calibrate->add_option("--radius", options->radius,
                        "Inference Privacy: distance within which inputs are indistinguishable");
  calibrate->add_option("--norm", p.ball.p, "p of the l_p metric of the radius, or inf")
      ->capture_default_str();
  calibrate->add_option(
      "--lipschitz", options->lipschitz,
      "Lipschitz constant of the output: from the radius's metric to L1 for lap-output, else L2");
  calibrate->add_option(
      "--dimension", options->dimension,
      "Number of coordinates: of the input for gauss-input, or of a box of equal sides");
  SetRun(calibrate, context, options, &Calibrate);
}

}  // namespace privatemail::client::cli
