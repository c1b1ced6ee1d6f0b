#include "client/python/extractor.h"

#include <dlfcn.h>
#include <pybind11/eigen.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "client/python/calls.h"
#include "common/features/feature_extractor.h"
#include "common/features/image_folder.h"

namespace privatemail::client::python {
namespace {

namespace py = pybind11;

// A model is tried by an interpreter that loads this module alone.
void SetTrialByPython() {
  static constexpr char kProgram[] =
      "import sys, importlib.util as u\n"
      "spec = u.spec_from_file_location('_native', sys.argv[1])\n"
      "module = u.module_from_spec(spec)\n"
      "spec.loader.exec_module(module)\n"
      "sys.exit(module.try_model(*sys.argv[2:]))";
  const py::object python = py::module_::import("sys").attr("executable");
  Dl_info module = {};
  // A program that embeds Python may have no interpreter to start.
  if (!py::bool_(python) || ::dladdr(kProgram, &module) == 0) return;
  SetModelTrial({py::str(python), "-I", "-S", "-c", kProgram, module.dli_fname});
}

// Thread-safe: every call makes extractors of its own, one a thread.
class Extractor {
 public:
  // model: of FindModel; empty: the built-in descriptor. Width and height 0: of its profile. Errors
  // of FindModel, ReadModelProfile and MakeOnnxExtractor.
  Extractor(const std::string& model, int input_width, int input_height)
      : built_in_(model.empty()) {
    if (!built_in_) {
      SetTrialByPython();
      options_ = Check(ReadModelProfile(Check(FindModel(model))));
    }
    if (input_width != 0 || input_height != 0) {
      options_.input_width = input_width;
      options_.input_height = input_height;
    }
    const std::unique_ptr<FeatureExtractor> one = Check(Unlocked([&] { return Make(); }));
    identity_ = one->identity();
    dim_ = one->dim();
  }

  const std::string& identity() const { return identity_; }
  int dim() const { return dim_; }

  // (features, a row of zeros where an image failed; why each failed, or "").
  py::tuple Extract(const std::vector<std::string>& paths, int threads) const {
    std::vector<FolderImage> images;
    for (const std::string& path : paths) {
      images.push_back({.path = path, .id = std::to_string(images.size()), .label = 0});
    }
    const FolderFeatures found = Interruptible([&] {
      const Extractors extractors = Check(MakeExtractors([&] { return Make(); }, threads));
      return Check(ExtractFolder(images, extractors, {.cancelled = Interrupted()}));
    });
    FloatMatrix features = FloatMatrix::Zero(std::ssize(paths), dim_);
    std::vector<std::string> failures(paths.size());
    for (size_t i = 0; i < found.ids.size(); ++i) {
      features.row(std::stoll(found.ids[i])) = found.features.row(static_cast<Eigen::Index>(i));
    }
    for (const SkippedImage& image : found.rejected) {
      failures[std::stoull(image.id)] = image.reason;
    }
    return py::make_tuple(features, failures);
  }

 private:
  absl::StatusOr<std::unique_ptr<FeatureExtractor>> Make() const {
    return built_in_ ? MakeBuiltInExtractor() : MakeOnnxExtractor(options_);
  }

  const bool built_in_;
  OnnxOptions options_;
  std::string identity_;
  int dim_ = 0;
};

}  // namespace

void AddExtractor(py::module_& module) {
  module.def("try_model", &TryModel);
  py::class_<Extractor>(module, "Extractor", py::module_local())
      .def(py::init<std::string, int, int>(), py::arg("model"), py::arg("input_width"),
           py::arg("input_height"))
      .def_property_readonly("identity", &Extractor::identity)
      .def_property_readonly("dim", &Extractor::dim)
      .def("extract", &Extractor::Extract, py::arg("paths"), py::arg("threads"));
}

}  // namespace privatemail::client::python
