#include "client/evaluation/command_line.h"

#include <filesystem>
#include <iostream>
#include <system_error>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/evaluation/data.h"
#include "client/evaluation/experiments/experiments.h"
#include "client/flags/names.h"
#include "client/flags/numbers.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/embedding/default_settings.h"
#include "common/features/feature_extractor.h"

namespace privatemail::client {
namespace {

class Rows {
 public:
  void Add(const LabelledRows& part) {
    const auto rows = static_cast<int64_t>(part.labels.size());
    least_ = most_ == 0 ? rows : std::min(least_, rows);
    most_ = std::max(most_, rows);
  }

  std::string Text() const {
    return least_ == most_ ? absl::StrCat(most_) : absl::StrCat(least_, " to ", most_);
  }

 private:
  int64_t least_ = 0;
  int64_t most_ = 0;
};

void AddDataOptions(CLI::App& app, EvaluationOptions* options) {
  app.add_option("--vectors", options->vectors, "Feature vectors: .npy, .fvecs or .csv");
  app.add_option("--labels", options->labels, "A class number for each: .npy, .ivecs, .csv, .txt");
  app.add_option("--images", options->images, "Instead of vectors: images in a folder by class");
  app.add_option("--preset", options->preset,
                 "cars196, cub200 or cifar100: the second paper's parameters (table 2)");
  app.add_option(
      "--data", options->data,
      "Folder of the preset's image set as it is distributed, of cars196 sorted into one "
      "folder a class; cifar100: also test.bin");
  app.add_option("--onnx", options->onnx, "Model for images; the built-in descriptor if absent");
  app.add_option("--input-size", options->input_size, "The input of --onnx, WIDTHxHEIGHT")
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
  cli::AddNumbers(&app, "--epsilons", &study.epsilons,
                  "Ascending, from 1e-6 to 1e6, for what is drawn against it, but for cells")
      ->default_str("0.01,0.03,0.1,0.3,1,3,10");
  app.add_option("--epsilon", study.epsilon, "Where there is one only")->capture_default_str();
  app.add_option("--delta", study.delta, "Of mechanisms that take one")->capture_default_str();
}

void AddSettings(CLI::App& app, EvaluationOptions* options) {
  EmbeddingSettings& s = options->study.settings;
  cli::AddEmbeddingOptions(&app, &s);
  app.add_option("--alpha", s.alpha,
                 "Weight of labels; by label graph and labels if absent, as for "
                 "`privatemail collection create`");
  app.add_option("--steps", s.steps, "T, on either side")->capture_default_str();
}

bool Given(const EvaluationOptions& options, const char* flag) {
  return options.app->count(flag) > 0;
}

bool HaveEpsilonsOfTheirOwn(const std::string& experiments) {
  const std::vector<std::string> names = absl::StrSplit(experiments, ',');
  return std::all_of(names.begin(), names.end(),
                     [](const std::string& name) { return name == "cells"; });
}

absl::Status CheckAllIsUsed(const EvaluationOptions& options) {
  if (!options.vectors.empty() && !options.onnx.empty()) {
    return absl::InvalidArgumentError("--onnx is for images and of no use to --vectors");
  }
  if (options.onnx.empty() && Given(options, "--input-size")) {
    return absl::InvalidArgumentError("--input-size is that of --onnx, which is not given");
  }
  if (Given(options, "--epsilons") && !options.attacks &&
      HaveEpsilonsOfTheirOwn(options.experiments)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--epsilons is of no use to --experiments ", options.experiments,
                     ": cells are drawn against epsilons of their own"));
  }
  if (!options.tune) return absl::OkStatus();
  for (const char* flag : {"--experiments", "--attacks", "--epsilons"}) {
    if (!Given(options, flag)) continue;
    return absl::InvalidArgumentError(absl::StrCat(flag, " is of no use to --tune"));
  }
  for (const char* flag : {"--anchors-per-class", "--dim", "--bandwidth", "--steps"}) {
    if (!Given(options, flag)) continue;
    return absl::InvalidArgumentError(absl::StrCat(flag, " is what --tune chooses by itself"));
  }
  return absl::OkStatus();
}

absl::StatusOr<OnnxOptions> OnnxOf(const EvaluationOptions& options) {
  OnnxOptions onnx;
  onnx.path = options.onnx;
  PM_ASSIGN_OR_RETURN(const auto size,
                      cli::ParseWidthAndHeight("--input-size", options.input_size));
  std::tie(onnx.input_width, onnx.input_height) = size;
  return onnx;
}

struct Data {
  LabelledRows rows;
  size_t skipped = 0;
};

void TellSkipped(const std::vector<SkippedImage>& skipped) {
  constexpr size_t kTold = 5;
  if (skipped.empty()) return;
  std::cerr << "left out " << skipped.size() << " files or folders:\n";
  for (size_t i = 0; i < std::min(kTold, skipped.size()); ++i) {
    std::cerr << "  " << Printable(skipped[i].id) << ": " << Printable(skipped[i].reason) << "\n";
  }
  if (skipped.size() > kTold) std::cerr << "  and " << skipped.size() - kTold << " more\n";
}

absl::StatusOr<Data> Describe(const ImageFolder& folder, const EvaluationOptions& options) {
  PM_ASSIGN_OR_RETURN(const OnnxOptions onnx, OnnxOf(options));
  TellSkipped(folder.skipped);
  const ExtractorFactory make = [&] {
    return onnx.path.empty() ? MakeBuiltInExtractor() : MakeOnnxExtractor(onnx);
  };
  const auto progress = [](int64_t done, int64_t total) {
    if (done % 500 != 0 && done != total) return;
    std::cerr << done << " of " << total << " images described\n";
  };
  PM_ASSIGN_OR_RETURN(LabelledRows rows,
                      DescribeImages(folder, make, options.out + "/features", progress));
  return Data{std::move(rows), folder.skipped.size()};
}

// A folder for images that are unpacked, removed with them: a run that was interrupted leaves it to
// the next, which begins with an empty one.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) { Remove(); }
  ~Scratch() { Remove(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }

 private:
  void Remove() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string path_;
};

absl::StatusOr<Data> ReadPresetData(const EvaluationOptions& options) {
  if (options.preset == "cifar100") {
    const Scratch scratch(options.out + "/unpacked");
    PM_ASSIGN_OR_RETURN(const ImageFolder folder, UnpackCifar100(options.data, scratch.path()));
    return Describe(folder, options);
  }
  PM_ASSIGN_OR_RETURN(const ImageFolder folder, options.preset == "cub200"
                                                    ? ListCub200(options.data)
                                                    : ListCars196(options.data));
  return Describe(folder, options);
}

absl::StatusOr<Data> ReadData(const EvaluationOptions& options) {
  const bool vectors = !options.vectors.empty();
  const bool images = !options.images.empty();
  const bool data = !options.data.empty();
  if (vectors + images + data != 1 || vectors == options.labels.empty() ||
      (data && options.preset.empty())) {
    return absl::InvalidArgumentError(
        "expected one source of data: --vectors with --labels, --images, or --data with --preset");
  }
  if (vectors) {
    PM_ASSIGN_OR_RETURN(LabelledRows rows, ReadLabelledVectors(options.vectors, options.labels));
    return Data{std::move(rows)};
  }
  if (data) return ReadPresetData(options);
  PM_ASSIGN_OR_RETURN(const ImageFolder folder, ListImageFolder(options.images));
  return Describe(folder, options);
}

// Options that the command line leaves to the preset or the data.
void TakeFrom(const Preset& preset, const EvaluationOptions& options, Study* study) {
  EmbeddingSettings& settings = study->settings;
  if (!Given(options, "--bandwidth")) settings.kernel_bandwidth = preset.settings.kernel_bandwidth;
  if (!Given(options, "--alpha")) settings.alpha = preset.settings.alpha;
  if (!Given(options, "--dim")) settings.embedding_dim = preset.settings.embedding_dim;
  if (!Given(options, "--steps")) settings.steps = preset.settings.steps;
  if (!Given(options, "--epsilon")) study->epsilon = preset.epsilon;
  if (!Given(options, "--delta")) study->delta = preset.delta;
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

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> About(const Study& study) {
  Rows anchors;
  Rows gallery;
  Rows targets;
  for (int64_t seed = 1; seed <= study.seeds; ++seed) {
    PM_ASSIGN_OR_RETURN(const DataSplit split,
                        MakeSplit(study.data, study.sizes, static_cast<uint64_t>(seed)));
    anchors.Add(split.anchors);
    gallery.Add(split.gallery);
    targets.Add(split.targets);
  }
  return std::vector<std::pair<std::string, std::string>>{
      {"Data", study.about},
      {"Anchors, gallery, targets of a split",
       absl::StrCat(anchors.Text(), "; ", gallery.Text(), "; ", targets.Text())},
      {"Retrieved", absl::StrCat("k = ", study.k)},
      {"Splits", absl::StrCat(study.seeds, " of this data set, each with noise of its own")},
      {"Bands", "each figure says of what kind"},
      {"Noise", "seeded: it can be drawn again, and was never released"}};
}

std::vector<std::pair<std::string, std::string>> SettingsOf(const Study& study) {
  const EmbeddingSettings& s = study.settings;
  return {{"--bandwidth (s)", FormatExact(s.kernel_bandwidth)},
          {"--alpha", FormatExact(s.alpha)},
          {"--kernel", cli::NameOf(cli::kKernelNames, s.kernel)},
          {"--label-graph", cli::NameOf(cli::kLabelGraphNames, s.label_graph)},
          {"--dim", absl::StrCat(s.embedding_dim)},
          {"--steps (T)", absl::StrCat(s.steps)},
          {"Scaled in every step", s.normalise ? "yes" : "no"},
          {"--start", cli::NameOf(cli::kStartNames, s.start)},
          {"Standard deviation of the start", FormatExact(s.start_stddev)},
          {"--epsilons (cells have their own)",
           absl::StrJoin(study.epsilons, ", ",
                         [](std::string* text, double epsilon) { *text += FormatExact(epsilon); })},
          {"--epsilon", FormatExact(study.epsilon)},
          {"--delta", FormatExact(study.delta)},
          {"-k", absl::StrCat(study.k)},
          {"--seeds", absl::StrCat(study.seeds, study.seeds > 1 ? ": 1 to " : ": ", study.seeds)},
          {"--targets", absl::StrCat(study.sizes.targets)},
          {"--anchors-per-class", absl::StrCat(study.sizes.anchors_per_class)},
          {"--gallery-per-class", absl::StrCat(study.sizes.gallery_per_class)},
          {"Program", "privatemail-evaluate " PRIVATEMAIL_VERSION},
          {"SHA-256 of the data", DigestOf(study.data)}};
}

void AddEvaluationOptions(CLI::App& app, EvaluationOptions* options) {
  options->app = &app;
  AddDataOptions(app, options);
  app.add_option("--out", options->out,
                 "Folder to make: the report, and features of images and results of parts, with "
                 "which a run goes on that was interrupted");
  app.add_option("--experiments", options->experiments,
                 absl::StrCat("Some of ", ExperimentNames(),
                              ", with commas between; all but the attacks if absent"));
  app.add_flag("--attacks", options->attacks, "The leakage report, too");
  app.add_flag("--tune", options->tune,
               "Instead: search for settings on these data alone. If they are a collection's "
               "public anchors, that spends no budget. Tries values of --dim, --bandwidth and "
               "--steps, and of --alpha around what is given");
  AddSizeOptions(app, options);
  AddSettings(app, options);
}

absl::StatusOr<Study> StudyOf(const EvaluationOptions& options) {
  PM_RETURN_IF_ERROR(CheckAllIsUsed(options));
  Study study = options.study;
  std::optional<Preset> preset;
  if (!options.preset.empty()) {
    PM_ASSIGN_OR_RETURN(preset, PresetNamed(options.preset));
    TakeFrom(*preset, options, &study);
  }
  PM_ASSIGN_OR_RETURN(const ClassHalf half, HalfOf(options, preset));
  PM_ASSIGN_OR_RETURN(const Data all, ReadData(options));
  study.data = ClassesOf(all.rows, half);
  if (!preset && !Given(options, "--alpha")) {
    study.settings.alpha = DefaultAlpha(study.settings.label_graph, study.data.labels);
  }
  study.about = absl::StrCat(study.data.features.rows(), " rows of ", study.data.features.cols(),
                             " values, ", CountClasses(study.data), " classes");
  if (all.skipped > 0)
    absl::StrAppend(&study.about, "; ", all.skipped, " files or folders left out");
  return study;
}

}  // namespace privatemail::client
