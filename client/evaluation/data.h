// Labelled vectors from files and from folders of images.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_DATA_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/dataset.h"
#include "common/base/matrix.h"
#include "common/features/image_folder.h"

namespace privatemail::client {

// Rows scaled to length 1. INVALID_ARGUMENT: as many labels as rows are expected; a row that is
// zero or not finite.
absl::StatusOr<LabelledRows> LabelRows(const FloatMatrix& features, std::vector<int32_t> labels);

// Of files in the formats of vector_file.h, errors included.
absl::StatusOr<LabelledRows> ReadLabelledVectors(const std::string& vectors,
                                                 const std::string& labels);

// SHA-256 over shape, values and labels, in hexadecimal: what results are kept under.
std::string DigestOf(const LabelledRows& data);

// The folder of CUB-200-2011, with or without CUB_200_2011 above: images/001.Black_footed_Albatross
// and so on. Labels are in the order of the folders' names, which begin with the class's number.
// Errors of ListImageFolder.
absl::StatusOr<ImageFolder> ListCub200(const std::string& directory);

// The folder of Cars196 sorted by class: CLASS/image.jpg, or the same in the folders `train` and
// `test` (of `car_data` or of the folder itself), which are then taken together, since the split of
// retrieval is by class. Labels are in the order of the classes' names. INVALID_ARGUMENT: the
// images as first distributed, not sorted, whose classes are in a MATLAB file; a class of one of
// the two folders that is missing in the other. Errors of ListImageFolder.
absl::StatusOr<ImageFolder> ListCars196(const std::string& directory);

// A file of CIFAR-100's binary version, test.bin or train.bin, or the folder that has test.bin
// (itself or in cifar-100-binary): for each image 1 byte coarse label, 1 byte fine label and 32 x
// 32 bytes of each of red, green and blue. Written as images into `scratch`, a new folder by fine
// label. INVALID_ARGUMENT: not a whole number of images of 3074 bytes, a fine label above 99.
absl::StatusOr<ImageFolder> UnpackCifar100(const std::string& path, const std::string& scratch);

// The features of a folder's images on all cores, those of every thousand images kept in `kept_in`
// (made if it is not there) once they are described. What was kept is read instead, where it
// belongs to the same bytes of images under the same ids and to the same extractor; a file that is
// damaged is replaced. INVALID_ARGUMENT: images could not be described; the message counts them and
// gives the first's reason. FAILED_PRECONDITION: no such folder can be made. Errors of
// ExtractFolder and WriteNpy.
absl::StatusOr<LabelledRows> DescribeImages(const ImageFolder& folder,
                                            const ExtractorFactory& extractor,
                                            const std::string& kept_in,
                                            const ProgressCallback& progress);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_DATA_H_
