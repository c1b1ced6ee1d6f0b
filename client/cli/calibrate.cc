#include <cmath>
#include <iostream>
#include <limits>

#include "client/cli/command.h"
#include "client/privacy/gaussian_mechanism.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::cli {
namespace {

struct CalibrateOptions {
  std::string mechanism;
  double epsilon = std::numeric_limits<double>::quiet_NaN();
  double delta = std::numeric_limits<double>::quiet_NaN();
  double sensitivity = std::numeric_limits<double>::quiet_NaN();
};

absl::Status Calibrate(const Context& context, const CalibrateOptions& options) {
  PM_ASSIGN_OR_RETURN(const Mechanism mechanism, MechanismFromName(options.mechanism));
  PM_RETURN_IF_ERROR(CheckFinitePositive("sensitivity", options.sensitivity));
  PM_ASSIGN_OR_RETURN(const double per_unit,
                      GaussianStddevPerUnit(mechanism, options.epsilon, options.delta));
  const double stddev = per_unit * options.sensitivity;
  // The classical formula has a proof below epsilon 1, for a sensitivity that holds.
  const bool proven = mechanism == Mechanism::kGaussian;
  const Guarantee guarantee{
      .epsilon = options.epsilon,
      .delta = options.delta,
      .neighbours = "any two inputs whose outputs differ by at most the sensitivity in L2",
      .proven = proven,
      .source = proven ? "Balle and Wang 2018, theorem 8"
                       : "PrivateMail (second version), definition 3: as published, "
                         "not a proven guarantee"};
  Answer(context,
         {{"stddev", stddev},
          {"variance", stddev * stddev},
          {"guarantee", ToJson(guarantee)},
          {"proven", proven}},
         [&] {
           std::cout << "standard deviation " << stddev << "\nvariance " << stddev * stddev << "\n"
                     << (proven ? "proven: " : "NOT PROVEN: ") << guarantee.source << "\n";
         });
  return absl::OkStatus();
}

}  // namespace

void AddCalibrateCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* calibrate = AddCommand(app, "calibrate", "How much noise a guarantee needs");
  calibrate->add_option("--mechanism", options->mechanism, "gaussian or published-gaussian")
      ->required();
  calibrate->add_option("--epsilon", options->epsilon, "Epsilon of the guarantee, positive")
      ->required();
  calibrate->add_option("--delta", options->delta, "Delta of the guarantee, between 0 and 1")
      ->required();
  calibrate->add_option("--sensitivity", options->sensitivity, "L2 sensitivity")->required();
  calibrate->callback([&context, options] {
    context.run = [&context, options] { return Calibrate(context, *options); };
  });
}

}  // namespace privatemail::cli
