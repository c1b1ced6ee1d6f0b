#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <opencv2/objdetect.hpp>
#include <vector>

#include "common/base/status_macros.h"
#include "common/features/feature_extractor.h"
#include "common/features/image_decoder.h"

namespace privatemail {
namespace {

// Changing any of these requires a new version in the identity.
constexpr char kIdentity[] = "builtin:hog-colour/1";
constexpr int kSide = 64;         // the image is stretched to kSide x kSide
constexpr int kCell = 16;         // cells of the gradient histograms, pixels
constexpr int kOrientations = 9;  // bins of a cell
constexpr int kGrid = 8;          // the colour layout is kGrid x kGrid
constexpr int kLightBins = 2;     // of the palette
constexpr int kChromaBins = 4;    // along each of the two chroma axes of the palette
constexpr float kShapeWeight = 1.f;
constexpr float kLayoutWeight = 2.5f;
constexpr float kPaletteWeight = .5f;
// Standard deviation of the layout's weight, where the centre is 0 and an edge 1.
constexpr float kLayoutStddev = .5f;

constexpr int kBlocks = (kSide / kCell - 1) * (kSide / kCell - 1);  // 2 x 2 cells, one cell apart
constexpr int kShapeDim = kBlocks * 4 * kOrientations;
constexpr int kLayoutDim = kGrid * kGrid * 3;
constexpr int kPaletteDim = kLightBins * kChromaBins * kChromaBins;
constexpr int kDim = kShapeDim + kLayoutDim + kPaletteDim;
static_assert(kDim == 548, "documented in feature_extractor.h");

// The two of `bins` equal bins over [low, high] whose centres are nearest to a value.
struct Share {
  int lower = 0;
  float upper_share = 0;
};
Share ShareOf(float value, float low, float high, int bins) {
  const float position = std::clamp((value - low) / (high - low) * bins - .5f, 0.f, bins - 1.f);
  const int lower = std::min(static_cast<int>(position), bins - 2);
  return {lower, position - lower};
}

// OpenCV fills its tables for Lab at the first conversion without a lock: two first conversions at
// once leak a table, and one may read the other's before it is filled.
void FillLabTables() {
  static const bool filled = [] {
    cv::Mat lab;
    cv::cvtColor(cv::Mat(1, 1, CV_32FC3, cv::Scalar()), lab, cv::COLOR_BGR2Lab);
    return true;
  }();
  (void)filled;
}

class BuiltInExtractor final : public FeatureExtractor {
 public:
  BuiltInExtractor()
      : hog_(cv::Size(kSide, kSide), cv::Size(2 * kCell, 2 * kCell), cv::Size(kCell, kCell),
             cv::Size(kCell, kCell), kOrientations) {
    FillLabTables();
  }

  absl::StatusOr<Eigen::RowVectorXf> ExtractBytes(const std::string& name,
                                                  absl::string_view bytes) override {
    PM_ASSIGN_OR_RETURN(const cv::Mat image,
                        DecodeImage(name, bytes, cv::Size(kSide, kSide), cv::INTER_AREA));
    return CatchOpenCv(name, "cannot be described", [&] { return Describe(name, image); });
  }

  int dim() const override { return kDim; }
  const std::string& identity() const override { return identity_; }

 private:
  absl::StatusOr<Eigen::RowVectorXf> Describe(const std::string& path, const cv::Mat& image) {
    cv::Mat grey, real, lab;
    cv::cvtColor(image, grey, cv::COLOR_BGR2GRAY);
    image.convertTo(real, CV_32FC3, 1 / 255.);
    cv::cvtColor(real, lab, cv::COLOR_BGR2Lab);  // lightness 0..100, chroma about -100..100
    Eigen::RowVectorXf feature(kDim);
    feature << kShapeWeight * Shape(grey), kLayoutWeight * Layout(lab),
        kPaletteWeight * Palette(lab);
    return ValidateFeature(path, feature.normalized());
  }

  // Each block has length at most 1, and so does the result.
  Eigen::RowVectorXf Shape(const cv::Mat& grey) {
    std::vector<float> blocks;
    hog_.compute(grey, blocks);
    return Eigen::Map<const Eigen::RowVectorXf>(blocks.data(), kShapeDim) /
           std::sqrt(static_cast<float>(kBlocks));
  }

  // Weighted towards the centre, where photographs show their subject. Unweighted, an image that is
  // black, white or of full chroma everywhere has length 1.
  static Eigen::RowVectorXf Layout(const cv::Mat& lab) {
    cv::Mat grid;
    cv::resize(lab, grid, cv::Size(kGrid, kGrid), 0, 0, cv::INTER_AREA);
    grid -= cv::Scalar(50, 0, 0);
    const auto from_centre = [](int cell) { return (2 * cell + 1.f) / kGrid - 1; };
    for (int row = 0; row < kGrid; ++row) {
      for (int column = 0; column < kGrid; ++column) {
        const float x = from_centre(column), y = from_centre(row);
        grid.at<cv::Vec3f>(row, column) *=
            std::exp(-(x * x + y * y) / (2 * kLayoutStddev * kLayoutStddev));
      }
    }
    return Eigen::Map<const Eigen::RowVectorXf>(grid.ptr<float>(), kLayoutDim) / (50.f * kGrid);
  }

  // Always of length 1.
  static Eigen::RowVectorXf Palette(const cv::Mat& lab) {
    Eigen::RowVectorXf histogram = Eigen::RowVectorXf::Zero(kPaletteDim);
    for (const auto& pixel : cv::Mat_<cv::Vec3f>(lab)) {
      const Share shares[] = {ShareOf(pixel[0], 0, 100, kLightBins),
                              ShareOf(pixel[1], -60, 60, kChromaBins),
                              ShareOf(pixel[2], -60, 60, kChromaBins)};
      for (int corner = 0; corner < 8; ++corner) {
        float weight = 1;
        int bin[3];
        for (int axis = 0; axis < 3; ++axis) {
          const int upper = (corner >> axis) & 1;
          bin[axis] = shares[axis].lower + upper;
          weight *= upper ? shares[axis].upper_share : 1 - shares[axis].upper_share;
        }
        histogram[(bin[0] * kChromaBins + bin[1]) * kChromaBins + bin[2]] += weight;
      }
    }
    return (histogram / histogram.sum()).cwiseSqrt();
  }

  const std::string identity_ = kIdentity;
  cv::HOGDescriptor hog_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FeatureExtractor>> MakeBuiltInExtractor() {
  return std::make_unique<BuiltInExtractor>();
}

}  // namespace privatemail
