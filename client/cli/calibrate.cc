#include <algorithm>
#include <iostream>
#include <limits>

#include "client/cli/command.h"
#include "client/privacy/make_mechanism.h"
#include "common/base/status_macros.h"

namespace privatemail::cli {
namespace {

struct CalibrateOptions {
  std::string mechanism;
  MechanismParameters parameters;
  int64_t dimension = 0;  // 0: as many as the box has sides, or 1
};

absl::Status Calibrate(const Context& context, CalibrateOptions options) {
  MechanismParameters& parameters = options.parameters;
  PM_ASSIGN_OR_RETURN(parameters.kind, MechanismFromName(options.mechanism));
  const auto sides = static_cast<int64_t>(parameters.box.lower.size());
  const int64_t values = options.dimension > 0 ? options.dimension : std::max<int64_t>(sides, 1);
  PM_ASSIGN_OR_RETURN(const Calibration noise, privatemail::Calibrate(parameters, values));
  const Guarantee& guarantee = noise.guarantee;
  Answer(context,
         {{"stddev", noise.stddev},
          {"variance", noise.stddev * noise.stddev},
          {"guarantee", ToJson(guarantee)},
          {"proven", guarantee.proven}},
         [&] {
           std::cout << "standard deviation " << noise.stddev << "\nvariance "
                     << noise.stddev * noise.stddev << "\nepsilon " << guarantee.epsilon
                     << ", delta " << guarantee.delta << ": " << guarantee.neighbours << "\n"
                     << (guarantee.proven ? "proven: " : "NOT PROVEN: ") << guarantee.source
                     << "\n";
         });
  return absl::OkStatus();
}

}  // namespace

void AddCalibrateCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<CalibrateOptions>();
  MechanismParameters& p = options->parameters;
  CLI::App* calibrate = AddCommand(app, "calibrate", "How much noise a guarantee needs");
  calibrate->add_option("--mechanism", options->mechanism, MechanismNames())->required();
  calibrate->add_option("--epsilon", p.epsilon, "What is promised")->required();
  calibrate->add_option("--delta", p.delta, "The same, for the Gaussian mechanisms");
  calibrate->add_option("--sensitivity", p.sensitivity,
                        "Of the value: L1 for laplace, else L2; not for Inference Privacy");
  calibrate
      ->add_option("--lower", p.box.lower,
                   "Lower ends of the box of a bounded mechanism, separated by commas; values "
                   "outside are clipped")
      ->delimiter(',');
  calibrate->add_option("--upper", p.box.upper, "Upper ends")->delimiter(',');
  calibrate->add_option("--radius", p.ball.radius,
                        "Inference Privacy: inputs this far apart are to be hard to tell apart");
  calibrate->add_option("--norm", p.ball.p, "p of the l_p metric of the radius, or inf")
      ->capture_default_str();
  calibrate->add_option("--lipschitz", p.lipschitz,
                        "Of the output, from the radius's metric: to L1 for lap-output, else L2");
  calibrate->add_option("--dimension", options->dimension,
                        "Coordinates of the input, for gauss-input; or of a box of equal sides");
  calibrate->callback([&context, options] {
    context.run = [&context, options] { return Calibrate(context, *options); };
  });
}

}  // namespace privatemail::cli
