#include "client/evaluation/command_line.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/names.h"
#include "client/cli/numbers.h"
#include "client/evaluation/data.h"
#include "client/evaluation/image_sets.h"
#include "client/evaluation/presets.h"
#include "common/base/status_macros.h"
#include "common/features/feature_extractor.h"
#include "common/numerics/usual_alpha.h"

namespace privatemail {
namespace {

void AddDataOptions(CLI::App& app, EvaluationOptions* options) {
  app.add_option("--vectors", options->vectors, "Feature vectors: .npy, .fvecs or .csv");
  app.add_option("--labels", options->labels, "A class number for each: .npy, .ivecs, .csv, .txt");
  app.add_option("--images", options->images, "Instead of vectors: images in a folder by class");
  app.add_option("--preset", options->preset,
                 "cars196, cub200 or cifar100: the second paper's parameters (table 2)");
  app.add_option("--data", options->data,
                 "Folder of the preset's image set as it is distributed; cifar100: also test.bin");
  app.add_option("--onnx", options->onnx, "Model for images; built-in descriptor if absent");
  app.add_option("--input-size", options->input_size, "The model's input, WIDTHxHEIGHT")
      ->capture_default_str();
  app.add_option("--classes", options->classes,
                 "all, first or second half of the classes by number; the preset's (second, "
                 "cifar100: all) if absent");
}

void AddSizeOptions(CLI::App& app, EvaluationOptions* options) {
  Study& study = options->study;
  study.seeds = 5;
  study.epsilons = {.01, .03, .1, .3, 1, 3, 10};
  app.add_option("--seeds", study.seeds, "Splits of the data, each with noise of its own")
      ->capture_default_str();
  app.add_option("--targets", study.sizes.targets, "Of each split")->capture_default_str();
  app.add_option("--anchors-per-class", study.sizes.anchors_per_class, "Public vectors")
      ->capture_default_str();
  app.add_option("--gallery-per-class", study.sizes.gallery_per_class, "At most")
      ->capture_default_str();
  app.add_option("-k", study.k, "Items that come back")->capture_default_str();
  cli::AddNumbers(&app, "--epsilons", &study.epsilons, "Ascending, for what is drawn against it")
      ->default_str("0.01,0.03,0.1,0.3,1,3,10");
  options->epsilon =
      app.add_option("--epsilon", study.epsilon, "Where there is one only")->capture_default_str();
  options->delta =
      app.add_option("--delta", study.delta, "Of mechanisms that take one")->capture_default_str();
}

void AddSettings(CLI::App& app, EvaluationOptions* options) {
  EmbeddingSettings& s = options->study.settings;
  options->bandwidth =
      app.add_option("--bandwidth", s.kernel_bandwidth, "s")->capture_default_str();
  options->alpha = app.add_option("--alpha", s.alpha,
                                  "Weight of labels; by their span if absent, as for "
                                  "`privatemail collection create`");
  options->dim =
      app.add_option("--dim", s.embedding_dim, "Of the embedding")->capture_default_str();
  options->steps = app.add_option("--steps", s.steps, "T, on either side")->capture_default_str();
  cli::AddChoice(&app, "--label-graph", &s.label_graph, cli::kLabelGraphNames, "Over labels");
  cli::AddChoice(&app, "--kernel", &s.kernel, cli::kKernelNames, "Over features");
}

absl::StatusOr<OnnxOptions> OnnxOf(const EvaluationOptions& options) {
  OnnxOptions onnx;
  onnx.path = options.onnx;
  if (std::sscanf(options.input_size.c_str(), "%dx%d", &onnx.input_width, &onnx.input_height) ==
      2) {
    return onnx;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--input-size must be WIDTHxHEIGHT, but is \"", options.input_size, "\""));
}

absl::StatusOr<LabelledRows> Describe(const ImageFolder& folder, const EvaluationOptions& options) {
  PM_ASSIGN_OR_RETURN(const OnnxOptions onnx, OnnxOf(options));
  const ExtractorFactory make = [&] {
    return onnx.path.empty() ? MakeBuiltInExtractor() : MakeOnnxExtractor(onnx);
  };
  const auto progress = [](int64_t done, int64_t total) {
    if (done % 500 != 0 && done != total) return;
    std::fprintf(stderr, "%lld of %lld images described\n", static_cast<long long>(done),
                 static_cast<long long>(total));
  };
  return DescribeImages(folder, make, progress);
}

// A folder for images that are unpacked, removed with them.
class Scratch {
 public:
  Scratch() : path_((std::filesystem::temp_directory_path() / "privatemail_XXXXXX").string()) {
    made_ = ::mkdtemp(path_.data()) != nullptr;
  }
  ~Scratch() {
    std::error_code ignored;
    if (made_) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  bool made() const { return made_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool made_;
};

absl::StatusOr<LabelledRows> ReadPresetData(const EvaluationOptions& options) {
  if (options.preset == "cifar100") {
    const Scratch scratch;
    if (!scratch.made()) {
      return absl::FailedPreconditionError(absl::StrCat("cannot make a folder ", scratch.path()));
    }
    PM_ASSIGN_OR_RETURN(const ImageFolder folder, UnpackCifar100(options.data, scratch.path()));
    return Describe(folder, options);
  }
  PM_ASSIGN_OR_RETURN(const ImageFolder folder, options.preset == "cub200"
                                                    ? ListCub200(options.data)
                                                    : ListCars196(options.data));
  return Describe(folder, options);
}

absl::StatusOr<LabelledRows> ReadData(const EvaluationOptions& options) {
  const bool vectors = !options.vectors.empty();
  const bool images = !options.images.empty();
  const bool data = !options.data.empty();
  if (vectors + images + data != 1 || vectors == options.labels.empty() ||
      (data && options.preset.empty())) {
    return absl::InvalidArgumentError(
        "expected one source of data: --vectors with --labels, --images, or --data with --preset");
  }
  if (vectors) return ReadLabelledVectors(options.vectors, options.labels);
  if (data) return ReadPresetData(options);
  PM_ASSIGN_OR_RETURN(const ImageFolder folder, ListImageFolder(options.images));
  return Describe(folder, options);
}

// What was not given on the command line.
void TakeFrom(const Preset& preset, const EvaluationOptions& options, Study* study) {
  EmbeddingSettings& settings = study->settings;
  if (options.bandwidth->count() == 0) settings.kernel_bandwidth = preset.settings.kernel_bandwidth;
  if (options.alpha->count() == 0) settings.alpha = preset.settings.alpha;
  if (options.dim->count() == 0) settings.embedding_dim = preset.settings.embedding_dim;
  if (options.steps->count() == 0) settings.steps = preset.settings.steps;
  if (options.epsilon->count() == 0) study->epsilon = preset.epsilon;
  if (options.delta->count() == 0) study->delta = preset.delta;
}

absl::StatusOr<ClassHalf> HalfOf(const EvaluationOptions& options,
                                 const std::optional<Preset>& preset) {
  if (options.classes == "all") return ClassHalf::kAll;
  if (options.classes == "first") return ClassHalf::kFirst;
  if (options.classes == "second") return ClassHalf::kSecond;
  if (options.classes.empty()) return preset ? preset->searched : ClassHalf::kAll;
  return absl::InvalidArgumentError(
      absl::StrCat("--classes must be all, first or second, but is \"", options.classes, "\""));
}

}  // namespace

void AddEvaluationOptions(CLI::App& app, EvaluationOptions* options) {
  AddDataOptions(app, options);
  app.add_option("--out", options->out,
                 "Folder to make: the report, and the results of parts, with which a run goes on "
                 "that was interrupted");
  app.add_option("--experiments", options->experiments,
                 "Names with commas between; all but the attacks if absent");
  app.add_flag("--attacks", options->attacks, "The leakage report, too");
  app.add_flag("--tune", options->tune,
               "Instead: search for settings on these data alone. Give anchors, which are public: "
               "then it tells nothing and spends no budget");
  AddSizeOptions(app, options);
  AddSettings(app, options);
}

absl::StatusOr<Study> StudyOf(const EvaluationOptions& options) {
  Study study = options.study;
  std::optional<Preset> preset;
  if (!options.preset.empty()) {
    PM_ASSIGN_OR_RETURN(preset, PresetNamed(options.preset));
    TakeFrom(*preset, options, &study);
  }
  PM_ASSIGN_OR_RETURN(const ClassHalf half, HalfOf(options, preset));
  PM_ASSIGN_OR_RETURN(const LabelledRows all, ReadData(options));
  study.data = ClassesOf(all, half);
  if (!preset && options.alpha->count() == 0) {
    study.settings.alpha = UsualAlpha(study.settings.label_graph, SpanOf(study.data.labels));
  }
  study.about = absl::StrCat(study.data.features.rows(), " rows of ", study.data.features.cols(),
                             " values, ", CountClasses(study.data), " classes");
  return study;
}

}  // namespace privatemail
