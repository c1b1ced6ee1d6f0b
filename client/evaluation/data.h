// Labelled vectors from files and folders of images, and their split into the three parties.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_DATA_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/baselines/baseline.h"
#include "common/base/matrix.h"
#include "common/embedding/smlq.h"
#include "common/features/image_folder.h"

namespace privatemail::client {

// Of files in the formats of vector_file.h, errors included.
absl::StatusOr<LabelledRows> ReadLabelledVectors(const std::string& vectors,
                                                 const std::string& labels);

// SHA-256 over shape, values and labels, in hexadecimal: what results are kept under.
std::string DigestOf(const LabelledRows& data);

// The folder of CUB-200-2011, with or without CUB_200_2011 above. Labels are in the order of the
// folders' names. Errors of ListImageFolder.
absl::StatusOr<ImageFolder> ListCub200(const std::string& directory);

// The folder of Cars196 sorted by class: CLASS/image.jpg, in the folder itself or in `train` and
// `test`, which are then merged. Labels are in the order of the classes' names. INVALID_ARGUMENT:
// not sorted by class; a class of only one of the two folders. Errors of ListImageFolder.
absl::StatusOr<ImageFolder> ListCars196(const std::string& directory);

// CIFAR-100's binary version, test.bin or train.bin or the folder of test.bin, unpacked as images
// into the new folder `scratch` by fine label. INVALID_ARGUMENT: not a whole number of images of
// 3074 bytes, a fine label above 99.
absl::StatusOr<ImageFolder> UnpackCifar100(const std::string& path, const std::string& scratch);

// The features of a folder's images on all cores, cached in `kept_in` per thousand images by their
// bytes, ids and extractor. INVALID_ARGUMENT: images that could not be described.
// FAILED_PRECONDITION: the cache folder cannot be made. Errors of ExtractFolder and WriteNpy.
absl::StatusOr<LabelledRows> DescribeImages(const ImageFolder& folder,
                                            const ExtractorFactory& extractor,
                                            const std::string& kept_in,
                                            const ProgressCallback& progress);

struct SplitSizes {
  int64_t anchors_per_class = 10;
  int64_t targets = 100;           // in all
  int64_t gallery_per_class = 80;  // at most
};

// Stratified and random by `seed` alone: per class the anchors, the targets (spread evenly over
// classes), and the rest, up to its limit, as gallery. INVALID_ARGUMENT naming the size or the
// class: fewer than 2 classes, a size below 1, a class with too few rows, not enough rows for the
// targets.
absl::StatusOr<DataSplit> MakeSplit(const LabelledRows& data, const SplitSizes& sizes,
                                    uint64_t seed);

// The rows of these numbers, in their order.
LabelledRows RowsOf(const LabelledRows& data, const std::vector<int64_t>& rows);

int64_t CountClasses(const LabelledRows& data);

// Which of the classes, in ascending order of their labels: the papers' image sets are split by
// class, the first half to train a network on, the second to search.
enum class ClassHalf { kAll, kFirst, kSecond };
LabelledRows ClassesOf(const LabelledRows& data, ClassHalf half);

struct Preset {
  const char* name;
  EmbeddingSettings settings;
  double epsilon;
  double delta;
  // Cars196 and CUB-200-2011 as in retrieval: networks are trained on the first half of the
  // classes, and the second is searched. CIFAR-100 is searched in all classes.
  ClassHalf searched;
};

// "cars196", "cub200" or "cifar100"; INVALID_ARGUMENT listing them for another name.
absl::StatusOr<Preset> PresetNamed(absl::string_view name);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_DATA_H_
