#include "client/evaluation/data.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/public_parameters.h"
#include "common/features/feature_extractor.h"
#include "common/features/vector_file.h"

namespace privatemail::client {
namespace {

absl::StatusOr<LabelledRows> LabelRows(const FloatMatrix& features, std::vector<int32_t> labels) {
  if (static_cast<Eigen::Index>(labels.size()) != features.rows()) {
    return absl::InvalidArgumentError(absl::StrCat("labels must be one a row: expected ",
                                                   features.rows(), ", got ", labels.size()));
  }
  PM_ASSIGN_OR_RETURN(Matrix unit, UnitRows("vectors", features));
  return LabelledRows{std::move(unit), std::move(labels)};
}

namespace fs = std::filesystem;

bool IsFolder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string Within(const std::string& directory, const std::string& name) {
  const fs::path inner = fs::path(directory) / name;
  return IsFolder(inner) ? inner.string() : directory;
}

void Append(const std::string& part, ImageFolder added, ImageFolder* all) {
  for (FolderImage& image : added.images) {
    image.id = absl::StrCat(part, "/", image.id);
    all->images.push_back(std::move(image));
  }
  for (SkippedImage& skipped : added.skipped) {
    all->skipped.push_back({absl::StrCat(part, "/", skipped.id), std::move(skipped.reason)});
  }
}

constexpr size_t kCifarImageBytes = 2 + 3 * 32 * 32;

// planes: 32 x 32 bytes of red, then green, then blue.
std::string Ppm(absl::string_view planes) {
  std::string bytes = "P6\n32 32\n255\n";
  for (size_t pixel = 0; pixel < 32 * 32; ++pixel) {
    for (size_t plane = 0; plane < 3; ++plane) bytes += planes[plane * 32 * 32 + pixel];
  }
  return bytes;
}

absl::Status CheckCifar100(const std::string& path, absl::string_view bytes) {
  if (bytes.empty() || bytes.size() % kCifarImageBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected images of ", kCifarImageBytes,
                                                   " bytes, got ", bytes.size(),
                                                   " bytes, which is no whole number of them"));
  }
  for (size_t image = 0; image < bytes.size() / kCifarImageBytes; ++image) {
    const int label = static_cast<unsigned char>(bytes[image * kCifarImageBytes + 1]);
    if (label < 100) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": image ", image, " has the fine label ", label, ", expected 0 to 99"));
  }
  return absl::OkStatus();
}

absl::Status MakeFolder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot make the folder ", path.string(), ": ", error.message()));
}

int Threads() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 256); }

constexpr Eigen::Index kKeptTogether = 1000;  // images
constexpr size_t kLargestImage = size_t{1} << 30;

std::string DigestOf(const ImageFolder& folder, const std::string& extractor) {
  Sha256 digest;
  digest.Add(extractor);
  for (const FolderImage& image : folder.images) {
    // An image that cannot be read has no features either.
    const std::string bytes = ReadFile("image", image.path, kLargestImage).value_or("");
    digest.Add(absl::StrCat("\n", image.id, " ", bytes.size(), "\n"));
    digest.Add(bytes);
  }
  return ToHex(digest.Digest());
}

std::optional<FloatMatrix> ReadKeptFeatures(const std::string& path, Eigen::Index rows,
                                            Eigen::Index dim) {
  absl::StatusOr<FloatMatrix> features = ReadVectors(path);
  if (!features.ok() || features->rows() != rows || features->cols() != dim) return std::nullopt;
  return *std::move(features);
}

// std::shuffle and the standard distributions differ between libraries; this does not.
template <typename T>
void Shuffle(std::mt19937_64& bits, std::vector<T>* items) {
  for (size_t i = items->size(); i > 1; --i) std::swap((*items)[i - 1], (*items)[bits() % i]);
}

absl::Status CheckSizes(const SplitSizes& sizes) {
  constexpr int64_t kMost = int64_t{1} << 40;
  PM_RETURN_IF_ERROR(CheckIntegerBetween("anchors_per_class", sizes.anchors_per_class, 1, kMost));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("targets", sizes.targets, 1, kMost));
  return CheckIntegerBetween("gallery_per_class", sizes.gallery_per_class, 1, kMost);
}

void Take(int64_t count, std::vector<int64_t>* rows, std::vector<int64_t>* party) {
  for (int64_t i = 0; i < count && !rows->empty(); ++i) {
    party->push_back(rows->back());
    rows->pop_back();
  }
}

// From class to class, as long as one has more than the row that the gallery needs.
absl::StatusOr<std::vector<int64_t>> TakeTargets(int64_t count,
                                                 std::vector<std::vector<int64_t>>* classes) {
  std::vector<int64_t> targets;
  for (bool found = true; found && static_cast<int64_t>(targets.size()) < count;) {
    found = false;
    for (std::vector<int64_t>& rows : *classes) {
      if (rows.size() < 2 || static_cast<int64_t>(targets.size()) == count) continue;
      Take(1, &rows, &targets);
      found = true;
    }
  }
  if (static_cast<int64_t>(targets.size()) == count) return targets;
  return absl::InvalidArgumentError(
      absl::StrCat("targets must be at most ", targets.size(),
                   ", the rows that anchors and gallery leave, but is ", count));
}

EmbeddingSettings TableTwo(double kernel_bandwidth, double alpha) {
  EmbeddingSettings settings;
  settings.kernel_bandwidth = kernel_bandwidth;
  settings.alpha = alpha;
  settings.embedding_dim = 2;
  settings.start_stddev = 1e-8;
  settings.steps = 5;
  return settings;
}

}  // namespace

absl::StatusOr<LabelledRows> ReadLabelledVectors(const std::string& vectors,
                                                 const std::string& labels) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix features, ReadVectors(vectors));
  PM_ASSIGN_OR_RETURN(std::vector<int32_t> of_rows, ReadLabels(labels));
  return LabelRows(features, std::move(of_rows));
}

std::string DigestOf(const LabelledRows& data) {
  const auto bytes_of = [](const auto* values, size_t count) {
    return absl::string_view(reinterpret_cast<const char*>(values), count * sizeof(*values));
  };
  Sha256 digest;
  digest.Add(absl::StrCat(data.features.rows(), " x ", data.features.cols(), "\n"));
  digest.Add(bytes_of(data.features.data(), static_cast<size_t>(data.features.size())));
  digest.Add(bytes_of(data.labels.data(), data.labels.size()));
  return ToHex(digest.Digest());
}

absl::StatusOr<ImageFolder> ListCub200(const std::string& directory) {
  return ListImageFolder(Within(Within(directory, "CUB_200_2011"), "images"));
}

absl::StatusOr<ImageFolder> ListCars196(const std::string& directory) {
  const fs::path root = Within(directory, "car_data");
  if (!IsFolder(root / "train") || !IsFolder(root / "test")) {
    const absl::StatusOr<ImageFolder> folder = ListImageFolder(root.string());
    if (!folder.ok() || folder->class_names.size() > 3) return folder;
    return absl::InvalidArgumentError(absl::StrCat(
        root.string(),
        ": expected a folder for each class, or such folders in train and test, got ",
        folder->class_names.size(), " folders with images; sort the images by class first"));
  }
  PM_ASSIGN_OR_RETURN(ImageFolder train, ListImageFolder((root / "train").string()));
  PM_ASSIGN_OR_RETURN(ImageFolder test, ListImageFolder((root / "test").string()));
  if (train.class_names != test.class_names) {
    return absl::InvalidArgumentError(absl::StrCat(
        root.string(), ": train and test must have the same classes, but have ",
        train.class_names.size(), " and ", test.class_names.size(), " of which some differ"));
  }
  ImageFolder all;
  all.class_names = train.class_names;
  Append("test", std::move(test), &all);
  Append("train", std::move(train), &all);
  return all;
}

absl::StatusOr<ImageFolder> UnpackCifar100(const std::string& path, const std::string& scratch) {
  const std::string folder = Within(path, "cifar-100-binary");
  const std::string file = IsFolder(folder) ? absl::StrCat(folder, "/test.bin") : folder;
  PM_ASSIGN_OR_RETURN(const std::string bytes, ReadFile("CIFAR-100", file, size_t{1} << 30));
  PM_RETURN_IF_ERROR(CheckCifar100(file, bytes));
  for (int label = 0; label < 100; ++label) {
    PM_RETURN_IF_ERROR(MakeFolder(fs::path(scratch) / absl::StrFormat("%02d", label)));
  }
  for (size_t image = 0; image < bytes.size() / kCifarImageBytes; ++image) {
    const absl::string_view one(bytes.data() + image * kCifarImageBytes, kCifarImageBytes);
    const std::string name = absl::StrFormat(
        "%s/%02d/%05d.ppm", scratch, static_cast<unsigned char>(one[1]), static_cast<int>(image));
    PM_RETURN_IF_ERROR(WriteFileAtomically(name, Ppm(one.substr(2)), 0600));
  }
  return ListImageFolder(scratch);
}

absl::StatusOr<LabelledRows> DescribeImages(const ImageFolder& folder,
                                            const ExtractorFactory& extractor,
                                            const std::string& kept_in,
                                            const ProgressCallback& progress) {
  PM_RETURN_IF_ERROR(MakeFolder(kept_in));
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<FeatureExtractor> one, extractor());
  const auto total = std::ssize(folder.images);
  FloatMatrix features(total, one->dim());
  std::vector<int32_t> labels;
  std::vector<SkippedImage> rejected;
  for (Eigen::Index first = 0; first < total; first += kKeptTogether) {
    const Eigen::Index count = std::min(kKeptTogether, total - first);
    const auto begin = folder.images.begin() + first;
    const ImageFolder part{
        .class_names = folder.class_names, .images = {begin, begin + count}, .skipped = {}};
    const std::string path =
        absl::StrCat(kept_in, "/", DigestOf(part, one->identity()).substr(0, 32), ".npy");
    std::optional<FloatMatrix> described = ReadKeptFeatures(path, count, one->dim());
    if (!described) {
      PM_ASSIGN_OR_RETURN(FolderFeatures now, ExtractFolder(part, extractor, Threads(),
                                                            [&](int64_t done, int64_t /*of_part*/) {
                                                              if (progress)
                                                                progress(first + done, total);
                                                            }));
      rejected.insert(rejected.end(), now.rejected.begin(), now.rejected.end());
      if (!rejected.empty()) continue;
      PM_RETURN_IF_ERROR(WriteNpy(path, now.features));
      described = std::move(now.features);
    }
    features.middleRows(first, count) = *described;
  }
  if (!rejected.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(rejected.size(), " images could not be described, the first being ",
                     rejected[0].id, ": ", rejected[0].reason));
  }
  for (const FolderImage& image : folder.images) labels.push_back(image.label);
  PM_ASSIGN_OR_RETURN(LabelledRows rows, LabelRows(features, std::move(labels)));
  rows.class_names = folder.class_names;
  return rows;
}

LabelledRows RowsOf(const LabelledRows& data, const std::vector<int64_t>& rows) {
  LabelledRows part;
  part.class_names = data.class_names;
  part.features.resize(static_cast<Eigen::Index>(rows.size()), data.features.cols());
  for (size_t i = 0; i < rows.size(); ++i) {
    part.features.row(static_cast<Eigen::Index>(i)) = data.features.row(rows[i]);
    part.labels.push_back(data.labels[static_cast<size_t>(rows[i])]);
  }
  return part;
}

absl::StatusOr<DataSplit> MakeSplit(const LabelledRows& data, const SplitSizes& sizes,
                                    uint64_t seed) {
  PM_RETURN_IF_ERROR(CheckSizes(sizes));
  std::map<int32_t, std::vector<int64_t>> of_class;
  for (size_t i = 0; i < data.labels.size(); ++i) {
    of_class[data.labels[i]].push_back(static_cast<int64_t>(i));
  }
  if (of_class.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels must have at least 2 classes, but have ", of_class.size()));
  }
  std::mt19937_64 bits(SeedOf("split", seed));
  std::vector<int64_t> anchors;
  std::vector<std::vector<int64_t>> classes;
  for (auto& [label, rows] : of_class) {
    if (static_cast<int64_t>(rows.size()) <= sizes.anchors_per_class) {
      return absl::InvalidArgumentError(absl::StrCat(
          "anchors_per_class must leave a row of every class to the gallery, but is ",
          sizes.anchors_per_class, " and class ", label, " has ", rows.size(), " rows"));
    }
    Shuffle(bits, &rows);
    Take(sizes.anchors_per_class, &rows, &anchors);
    classes.push_back(std::move(rows));
  }
  Shuffle(bits, &classes);
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> targets, TakeTargets(sizes.targets, &classes));
  std::vector<int64_t> gallery;
  for (std::vector<int64_t>& rows : classes) Take(sizes.gallery_per_class, &rows, &gallery);
  std::sort(gallery.begin(), gallery.end());
  return DataSplit{.anchors = RowsOf(data, anchors),
                   .gallery = RowsOf(data, gallery),
                   .targets = RowsOf(data, targets)};
}

int64_t CountClasses(const LabelledRows& data) {
  const std::set<int32_t> distinct(data.labels.begin(), data.labels.end());
  return static_cast<int64_t>(distinct.size());
}

LabelledRows ClassesOf(const LabelledRows& data, ClassHalf half) {
  const std::set<int32_t> distinct(data.labels.begin(), data.labels.end());
  const std::vector<int32_t> classes(distinct.begin(), distinct.end());
  if (half == ClassHalf::kAll || classes.empty()) return data;
  const int32_t middle = classes[classes.size() / 2];
  std::vector<int64_t> rows;
  for (size_t i = 0; i < data.labels.size(); ++i) {
    if ((data.labels[i] < middle) == (half == ClassHalf::kFirst)) {
      rows.push_back(static_cast<int64_t>(i));
    }
  }
  return RowsOf(data, rows);
}

absl::StatusOr<Preset> PresetNamed(absl::string_view name) {
  for (const Preset& preset : {Preset{"cars196", TableTwo(6, .6), .1, 1e-5, ClassHalf::kSecond},
                               Preset{"cub200", TableTwo(5, .5), .1, 1e-5, ClassHalf::kSecond},
                               Preset{"cifar100", TableTwo(6, .6), .1, 1e-5, ClassHalf::kAll}}) {
    if (name == preset.name) return preset;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--preset must be cars196, cub200 or cifar100, but is \"", name, "\""));
}

}  // namespace privatemail::client
