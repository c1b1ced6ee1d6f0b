// The module privatemail.evaluation._seeded: releases, embeddings and attacks with seeded noise. It
// has no network channel; privatemail/_noise.py keeps it out of a process that has one.
#include <pybind11/eigen.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/privacy/mechanisms/bounded_gaussian_calibration.h"
#include "client/privacy/mechanisms/calibration.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/python/calls.h"
#include "client/python/extractor.h"
#include "client/seeded_bits/seeded_bits.h"
#include "client/simulation/attacks.h"
#include "client/simulation/queries.h"
#include "client/simulation/trial.h"
#include "common/embedding/default_settings.h"
#include "common/embedding/setting_names.h"
#include "common/features/vector_file.h"

namespace privatemail::client::python {
namespace {

namespace py = pybind11;
using namespace simulation;  // NOLINT(google-build-using-namespace): this file wraps it

using Rows = Eigen::Ref<const Matrix>;
using Labels = std::vector<int32_t>;
using RowNumbers = Eigen::Matrix<int64_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// A row that is shorter ends with -1.
RowNumbers ToArray(const std::vector<std::vector<int64_t>>& rows, int64_t columns) {
  RowNumbers array = RowNumbers::Constant(std::ssize(rows), columns, -1);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < rows[i].size(); ++j) {
      array(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = rows[i][j];
    }
  }
  return array;
}

template <typename Value>
Value Named(const char* field, const std::map<std::string, Value>& names, const std::string& name) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  throw StatusError(UnknownName(field, names, name));
}

// settings: privatemail.evaluation.study.Settings.
EmbeddingSettings SettingsOf(const py::handle& settings) {
  const auto text = [&](const char* name) { return settings.attr(name).cast<std::string>(); };
  EmbeddingSettings result;
  result.kernel_bandwidth = settings.attr("kernel_bandwidth").cast<double>();
  result.alpha = settings.attr("alpha").cast<double>();
  result.kernel = Named("kernel", kKernelNames, text("kernel"));
  result.label_graph = Named("label_graph", kLabelGraphNames, text("label_graph"));
  result.embedding_dim = settings.attr("embedding_dim").cast<int>();
  result.steps = settings.attr("steps").cast<int>();
  result.normalise = settings.attr("normalise").cast<bool>();
  result.start_stddev = settings.attr("start_stddev").cast<double>();
  result.start = Named("start", kStartNames, text("start"));
  return result;
}

class PyTrial {
 public:
  PyTrial(Split split, int64_t k, uint64_t seed)
      : trial_(Check(Trial::Create(std::move(split), k, seed))) {}

  const std::shared_ptr<const Trial>& trial() const { return trial_; }
  // Created at first use: it searches the neighbours of every item.
  const CellTrial& cells() const {
    std::call_once(cells_once_, [&] { cells_.emplace(*trial_); });
    return *cells_;
  }

 private:
  const std::shared_ptr<const Trial> trial_;
  mutable std::once_flag cells_once_;
  mutable std::optional<CellTrial> cells_;
};

// Holds its trial, which caches it.
struct PyScene {
  std::shared_ptr<const PyTrial> trial;
  std::shared_ptr<const Scene> scene;
};

std::optional<PrivacyCost> CostOf(std::optional<double> epsilon, double delta,
                                  const std::string& mechanism, std::optional<double> radius,
                                  int64_t private_iterations) {
  if (!epsilon) return std::nullopt;
  PrivacyCost cost{.epsilon = *epsilon,
                   .mechanism = Check(MechanismFromName(mechanism)),
                   .private_iterations = private_iterations};
  // Several iterations of a pure law compose better with a delta.
  if (TraitsOf(cost.mechanism).TakesDelta() || private_iterations > 1) cost.delta = delta;
  cost.radius = radius;
  return cost;
}

py::tuple Query(const PyScene& self, std::optional<double> epsilon, double delta,
                const std::string& mechanism, std::optional<double> radius,
                int64_t private_iterations, const std::string& feature, const std::string& label,
                bool slots) {
  static const std::map<std::string, QueryConfig::Feature> kFeatures = {
      {"own", QueryConfig::Feature::kOwn}, {"random", QueryConfig::Feature::kRandom}};
  static const std::map<std::string, QueryConfig::Label> kLabels = {
      {"own", QueryConfig::Label::kOwn}, {"wrong", QueryConfig::Label::kWrong}};
  const QueryConfig config{.cost = CostOf(epsilon, delta, mechanism, radius, private_iterations),
                           .feature = Named("feature", kFeatures, feature),
                           .label = Named("label", kLabels, label),
                           .slots = slots};
  const Answers answers = Check(Unlocked([&] { return QueryAll(*self.scene, config); }));
  const auto unanswered =
      std::count_if(answers.rows.begin(), answers.rows.end(),
                    [](const std::vector<int64_t>& rows) { return rows.empty(); });
  return py::make_tuple(ToArray(answers.rows, self.scene->trial->k()), answers.mean_residual,
                        unanswered);
}

py::dict AlignedRelease(const PyScene& self, int64_t target, double epsilon, double delta,
                        const std::string& part) {
  const Alignment aligned = Check(Unlocked([&] {
    return AlignRelease(*self.scene, target, PrivacyCost{.epsilon = epsilon, .delta = delta}, part);
  }));
  py::dict result;
  result["anchors"] = aligned.anchors;
  result["slots"] = aligned.slots;
  result["aligned_anchors"] = aligned.aligned_anchors;
  result["aligned_slots"] = aligned.aligned_slots;
  result["slot"] = aligned.slot;
  result["residual"] = aligned.residual;
  return result;
}

std::vector<double> AttackedTargets(const PyScene& self, const std::string& name,
                                    std::optional<double> epsilon, double delta,
                                    const std::string& part) {
  const AttackedReleases releases{.cost = CostOf(epsilon, delta, "gaussian", std::nullopt, 1),
                                  .part = part};
  return Check(Unlocked([&] { return Attack(name, *self.scene, releases); }));
}

py::list Mechanisms() {
  constexpr std::array kProtects = {"value", "output", "input"};
  constexpr std::array kLaws = {"gaussian", "laplace", "bounded-gaussian"};
  py::list list;
  for (const MechanismTraits& traits : AllMechanisms()) {
    py::dict one;
    one["name"] = traits.name;
    one["protects"] = kProtects.at(static_cast<size_t>(traits.protects));
    one["law"] = kLaws.at(static_cast<size_t>(traits.law));
    one["published"] = traits.published;
    one["takes_delta"] = traits.TakesDelta();
    list.append(one);
  }
  return list;
}

// Chen and Hale's figure 1 and table 1: two values in [0, 10] and [1, 9] that move by at most 4 and
// 2. generalised: Liu 2019, definition 5; its seven printed values are the sum of (2 w + D) D /
// epsilon over the values' widths w and sensitivities D.
std::map<std::string, double> BoundedGaussianVariances(double epsilon, double delta) {
  const std::vector<double> widths = {10, 8};
  const std::vector<double> moves = {4, 2};
  const double sensitivity = std::hypot(moves[0], moves[1]);
  double generalised = 0;
  for (size_t i = 0; i < widths.size(); ++i) generalised += (2 * widths[i] + moves[i]) * moves[i];
  const auto squared = [](double stddev) { return stddev * stddev; };
  return {{"generalised", generalised / epsilon},
          {"printed", squared(Check(PublishedBoundedGaussianStddev(widths, sensitivity, epsilon)))},
          {"exact", squared(Check(BoundedGaussianStddev(widths, sensitivity, epsilon)))},
          {"classical", squared(sensitivity * Check(PublishedGaussianStddev(epsilon, delta)))},
          {"analytic", squared(sensitivity * Check(AnalyticGaussianStddev(epsilon, delta)))}};
}

void AddTrial(py::module_& module) {
  py::class_<PyTrial, std::shared_ptr<PyTrial>>(module, "Trial")
      .def(py::init([](const Rows& anchors, Labels anchor_labels, const Rows& gallery,
                       Labels gallery_labels, const Rows& targets, Labels target_labels, int64_t k,
                       uint64_t seed) {
             Split split{.anchors = {anchors, std::move(anchor_labels)},
                         .gallery = {gallery, std::move(gallery_labels)},
                         .targets = {targets, std::move(target_labels)}};
             return Unlocked([&] { return std::make_shared<PyTrial>(std::move(split), k, seed); });
           }),
           py::arg("anchors"), py::arg("anchor_labels"), py::arg("gallery"),
           py::arg("gallery_labels"), py::arg("targets"), py::arg("target_labels"), py::kw_only(),
           py::arg("k"), py::arg("seed"))
      .def_property_readonly(
          "nearest",
          [](const PyTrial& self) { return ToArray(self.trial()->nearest(), self.trial()->k()); })
      .def("scene",
           [](const std::shared_ptr<PyTrial>& self, const py::object& settings) {
             const EmbeddingSettings read = SettingsOf(settings);
             auto scene = Unlocked([&] { return self->trial()->SceneOf(read); });
             return std::make_shared<PyScene>(PyScene{self, Check(std::move(scene))});
           })
      .def(
          "plan_cells",
          [](const PyTrial& self, double epsilon, double share) {
            const CellPlan plan =
                Check(Unlocked([&] { return self.cells().PlanFor(epsilon, share); }));
            return py::make_tuple(plan.cells, plan.length, plan.expected_fidelity);
          },
          py::arg("epsilon"), py::arg("share"))
      .def(
          "ask_cells",
          [](const PyTrial& self, int64_t cells, int64_t length, double epsilon,
             const std::string& part) {
            const CellPlan plan{.cells = cells, .length = length};
            return ToArray(
                Check(Unlocked([&] { return self.cells().QueryAll(plan, epsilon, part); })),
                self.trial()->k());
          },
          py::arg("cells"), py::arg("length"), py::arg("epsilon"), py::arg("part"));
}

void AddScene(py::module_& module) {
  py::class_<PyScene, std::shared_ptr<PyScene>>(module, "Scene")
      .def_property_readonly("slot_labels",
                             [](const PyScene& self) {
                               const Labels& labels = self.scene->joint.parameters.slot_labels;
                               return py::array_t<int32_t>(std::ssize(labels), labels.data());
                             })
      .def_property_readonly("anchor_rows",
                             [](const PyScene& self) { return self.scene->embedded->anchors; })
      .def("ask", &Query, py::kw_only(), py::arg("epsilon") = py::none(), py::arg("delta") = 0,
           py::arg("mechanism") = "gaussian", py::arg("radius") = py::none(),
           py::arg("private_iterations") = 1, py::arg("feature") = "own", py::arg("label") = "own",
           py::arg("slots") = true)
      .def("embed_together",
           [](const PyScene& self) {
             EmbeddedTogether rows = Check(Unlocked([&] { return EmbedTogether(*self.scene); }));
             return py::make_tuple(std::move(rows.gallery), std::move(rows.targets));
           })
      .def(
          "objective",
          [](const PyScene& self, int iterations) {
            Objective objective =
                Check(Unlocked([&] { return ServerObjective(*self.scene, iterations); }));
            return py::make_tuple(objective.as_defined, objective.scaled);
          },
          py::arg("iterations"))
      .def("release", &AlignedRelease, py::arg("target"), py::kw_only(), py::arg("epsilon"),
           py::arg("delta"), py::arg("part"))
      .def("attack", &AttackedTargets, py::arg("name"), py::kw_only(), py::arg("epsilon"),
           py::arg("delta"), py::arg("part"));
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "The C++ core of privatemail.evaluation, with seeded noise. Its names may change.";
  module.attr("__version__") = PRIVATEMAIL_VERSION;
  RegisterStatusError(module);
  AddExtractor(module);
  AddTrial(module);
  AddScene(module);
  module.def("check_settings",
             [](const py::object& settings) { Check(Validate(SettingsOf(settings))); });
  module.def("default_alpha", [](const std::string& label_graph, const Labels& labels) {
    return DefaultAlpha(Named("label_graph", kLabelGraphNames, label_graph), labels);
  });
  module.def("mechanisms", &Mechanisms);
  module.def("read_vectors", [](const std::string& path) { return Check(ReadVectors(path)); });
  module.def("read_labels", [](const std::string& path, int64_t rows) {
    LabelColumn labels = Check(ReadLabels(path, rows));
    return py::make_tuple(std::move(labels.numbers), std::move(labels.names));
  });
  module.def(
      "seed_of",
      [](const std::string& part, uint64_t seed, uint64_t number) {
        return SeedOf(part, seed, number);
      },
      py::arg("part"), py::arg("seed"), py::arg("number") = 0);
  module.def("nearest", [](const Rows& queries, const Rows& points, int64_t k) {
    return ToArray(Unlocked([&] { return NearestOf(queries, points, k); }), k);
  });
  module.def("gaussian_stddev", [](double epsilon, double delta) {
    return Check(AnalyticGaussianStddev(epsilon, delta));
  });
  module.def("bounded_gaussian_variances", &BoundedGaussianVariances);
  module.def("cell_ceiling", &CellCeiling);
}

}  // namespace privatemail::client::python
