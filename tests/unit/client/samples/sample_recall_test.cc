#include <gtest/gtest.h>

#include <string>

#include "client/samples/sample_images.h"
#include "common/features/image_folder.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

// Share of the pictures whose nearest other picture, by the cosine of the built-in descriptor,
// shows the same species.
double LeaveOneOutRecall(const std::string& directory) {
  const ImageFolder folder = ListImageFolder(directory).value();
  const FolderFeatures found = ExtractFolder(folder, MakeBuiltInExtractor, 2, nullptr).value();
  const FloatMatrix unit = found.features.rowwise().normalized();
  FloatMatrix cosines = unit * unit.transpose();
  cosines.diagonal().setConstant(-2);
  int right = 0;
  for (Eigen::Index i = 0; i < cosines.rows(); ++i) {
    Eigen::Index nearest;
    cosines.row(i).maxCoeff(&nearest);
    right += found.labels[nearest] == found.labels[i];
  }
  return static_cast<double>(right) / static_cast<double>(cosines.rows());
}

// Material for experiments: neighbours must be findable without being trivial to find.
TEST(SampleImages, NeighboursAreMostlyRightAndNeverAllRight) {
  const TemporaryFolder folder;
  SampleImageOptions options;
  options.out_dir = folder / "birds";
  ASSERT_TRUE(WriteSampleImages(options, nullptr).ok());
  const double recall = LeaveOneOutRecall(folder / "birds");
  RecordProperty("recall", std::to_string(recall));
  EXPECT_GE(recall, .55);
  EXPECT_LE(recall, .95);
}

}  // namespace
}  // namespace privatemail::client
