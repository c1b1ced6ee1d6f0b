#include <optional>

#include "client/cli/command.h"
#include "client/cli/flags.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

struct CalibrateOptions {
  std::string mechanism;
  MechanismParameters parameters;
  std::optional<int64_t> dimension;
};

absl::StatusOr<Result> Calibrate(const Context&, CalibrateOptions options) {
  MechanismParameters& parameters = options.parameters;
  PM_ASSIGN_OR_RETURN(parameters.kind, MechanismFromName(options.mechanism));
  PM_ASSIGN_OR_RETURN(const int64_t values, ValueCount(parameters, options.dimension));
  PM_ASSIGN_OR_RETURN(const Calibration noise, client::Calibrate(parameters, values));
  PM_ASSIGN_OR_RETURN(const double variance, VarianceOf(noise.stddev));
  return Result{.json = {{"stddev", noise.stddev},
                         {"variance", variance},
                         {"guarantee", ToJson(noise.guarantee)},
                         {"proven", noise.guarantee.proven}}};
}

}  // namespace

void AddCalibrateCommand(CLI::App& app, Context& context) {
  const auto [calibrate, options] =
      AddCommand(app, context, "calibrate", "Compute the noise that a guarantee needs", &Calibrate);
  MechanismParameters& p = options->parameters;
  calibrate->add_option("--mechanism", options->mechanism, MechanismNames())->required();
  calibrate->add_option("--epsilon", p.epsilon, "Epsilon of the guarantee")->required();
  calibrate->add_option("--delta", p.delta, "Delta of the guarantee, for the Gaussian mechanisms");
  calibrate->add_option(
      "--sensitivity", p.sensitivity,
      "Sensitivity of the value: L1 for laplace, else L2; not for Inference Privacy");
  AddNumbers(
      calibrate, "--lower", &p.box.lower,
      "Lower ends of the box of a bounded mechanism, separated by commas; values outside are "
      "clipped");
  AddNumbers(calibrate, "--upper", &p.box.upper, "Upper ends of the box");
  calibrate->add_option("--radius", p.radius,
                        "Inference Privacy: distance within which inputs are indistinguishable");
  calibrate->add_option("--norm", p.norm, "p of the l_p metric of the radius, or inf")
      ->capture_default_str();
  calibrate->add_option(
      "--lipschitz", p.lipschitz,
      "Lipschitz constant of the output: from the radius's metric to L1 for lap-output, else L2");
  calibrate->add_option(
      "--dim", options->dimension,
      "Number of coordinates: of the input for gauss-input, or of a box of equal sides");
}

}  // namespace privatemail::client::cli
