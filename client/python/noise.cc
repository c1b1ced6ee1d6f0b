#include <pybind11/eigen.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/audit/subjects.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "client/privacy/sensitivity/named_bounds.h"
#include "client/python/calls.h"
#include "client/python/session.h"

// Noise, its sensitivity and attacks on it: without a server, a target or a budget.

namespace privatemail::client::python {
namespace {

namespace py = pybind11;

py::tuple CalibrateNoise(const std::string& mechanism, double epsilon, std::optional<double> delta,
                         std::optional<double> sensitivity, const std::vector<double>& lower,
                         const std::vector<double>& upper, std::optional<double> radius,
                         double norm, std::optional<double> lipschitz,
                         std::optional<int64_t> dimension) {
  const MechanismParameters parameters{.kind = Check(MechanismFromName(mechanism)),
                                       .epsilon = epsilon,
                                       .delta = delta,
                                       .sensitivity = sensitivity,
                                       .box = {.lower = lower, .upper = upper},
                                       .radius = radius,
                                       .norm = norm,
                                       .lipschitz = lipschitz};
  const Calibration noise = Check(Calibrate(parameters, Check(ValueCount(parameters, dimension))));
  return py::make_tuple(noise.stddev, Check(VarianceOf(noise.stddev)),
                        GuaranteeToDict(noise.guarantee));
}

py::tuple BoundSensitivity(const std::string& bound, const std::vector<int32_t>& anchor_labels,
                           const std::optional<FloatMatrix>& anchors, std::optional<int> changed,
                           std::optional<uint64_t> seed, const py::dict& settings) {
  const BoundRequest request{.bound = bound,
                             .settings = SettingsOf(settings, anchor_labels),
                             .anchor_labels = anchor_labels,
                             .anchors = anchors,
                             .changed = changed,
                             .seed = seed};
  const NamedBound computed = Interruptible([&] { return Check(ComputeBound(request)); });
  py::dict values;
  for (const BoundValue& value : computed.values) values[value.key] = value.value;
  return py::make_tuple(values, computed.rows, computed.proven, computed.source);
}

// progress: sees the part of all subjects that is done, and their number.
py::list Audit(const std::string& mechanism, double epsilon, std::optional<double> delta,
               int64_t releases, double confidence,
               const std::function<void(double, double)>& progress) {
  const auto results = Interruptible([&] {
    const auto subjects = Check(audit::Subjects(mechanism, epsilon, delta));
    std::vector<audit::Result> all;
    const auto observe = [&, interrupted = Interrupted()](double share) {
      if (progress) {
        progress(static_cast<double>(all.size()) + share, static_cast<double>(subjects.size()));
      }
      return CheckNotCancelled(interrupted);
    };
    for (const audit::CreateSubject& create : subjects) {
      Check(observe(0));
      all.push_back(Check(audit::RunAudit(Check(create()), {releases, confidence, observe})));
    }
    return all;
  });
  py::list rows;
  for (const audit::Result& result : results) {
    py::dict row;
    row["mechanism"] = result.mechanism;
    row["claim"] = GuaranteeToDict(result.claim);
    row["epsilon_lower"] = result.epsilon_lower;
    row["exceeded"] = result.Exceeded();
    row["confidence"] = result.confidence;
    row["attack"] = result.best_attack;
    row["releases"] = result.releases;
    rows.append(row);
  }
  return rows;
}

}  // namespace

void AddNoise(py::module_& module) {
  module.def("calibrate", &CalibrateNoise)
      .def("sensitivity", &BoundSensitivity)
      .def("audit", &Audit);
}

}  // namespace privatemail::client::python
