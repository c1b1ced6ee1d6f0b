// What comes after the bird: water, grass and leaves in front of it, then light and paper.
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "client/samples/foliage.h"
#include "client/samples/scene.h"

namespace privatemail::client::samples {
namespace {

// Below the waterline the bird is its own mirror image, broken by ripples, fainter with distance.
void Reflect(float waterline, const Picture& without_bird, Random* random, Picture* picture) {
  const Picture above = picture->clone();
  const float phase = random->Uniform(0, 6), side = static_cast<float>(picture->cols);
  for (int y = 0; y < picture->rows; ++y) {
    const float down = static_cast<float>(y) - waterline;
    const float ripple = (.002f + .045f * std::max(down, 0.f) / side) * side;
    const int shift = static_cast<int>(std::lround(ripple * std::sin(.55f * down + phase)));
    const int mirror = static_cast<int>(waterline - 1.15f * down);
    const float share = .62f * std::exp(-2.2f * down / side);
    for (int x = 0; x < picture->cols; ++x) {
      const float edge = 1.6f * std::sin(.06f * static_cast<float>(x) + phase);
      if (down < edge) continue;
      const cv::Vec3b& water = without_bird(y, x);
      const cv::Vec3b& image = above(std::clamp(mirror, 0, picture->rows - 1),
                                     std::clamp(x + shift, 0, picture->cols - 1));
      for (int c = 0; c < 3; ++c) {
        (*picture)(y, x)[c] = cv::saturate_cast<uchar>((1 - share) * static_cast<float>(water[c]) +
                                                       share * .93f * static_cast<float>(image[c]));
      }
    }
  }
}

void PaintRings(const Anatomy& bird, Random* random, Picture* picture) {
  Mask rings = Mask::zeros(picture->size());
  const float side = static_cast<float>(picture->cols);
  for (int i = 0; i < 3; ++i) {
    const float wide =
        (.28f + .17f * static_cast<float>(i)) * bird.unit * random->Uniform(.9f, 1.1f);
    const cv::Size axes(static_cast<int>(wide), static_cast<int>(.13f * wide));
    cv::ellipse(rings, cv::Point(cv::Point2f(bird.centre.x, bird.ground_y + .012f * side)), axes, 0,
                random->Uniform(-20, 60), random->Uniform(120, 210), 255, 2, cv::LINE_AA);
  }
  Paint(Soft(rings, .9f), Colour(255, 255, 255), .42f, picture);
}

void PaintGrassInFront(const Scene& scene, float ground_y, Random* random, Picture* picture) {
  const float side = static_cast<float>(picture->cols);
  Mask pale = Mask::zeros(picture->size()), deep = pale.clone(), flowers = pale.clone();
  const int blades = 14 + random->Index(40);
  for (int i = 0; i < blades; ++i) {
    const Point root(random->Uniform(0, side), ground_y + random->Uniform(.02f, .12f) * side);
    const float length = random->Uniform(.05f, .16f) * side, lean = random->Bell(.03f) * side;
    AddBlade(root, length, lean, .006f * side, random->Chance(.5f) ? &pale : &deep);
    if (random->Chance(.12f)) AddDisc(root + Point(lean, -length), .011f * side, &flowers);
  }
  const float dry = scene.season.snow ? .6f : 0;
  Paint(deep, Mix(Times(scene.season.leaf, .65f), Hex(0x8E8468), dry), .92f, picture);
  Paint(pale, Mix(scene.season.leaf, Hex(0xC9BC92), std::max(dry, .25f)), .92f, picture);
  Paint(flowers, scene.season.bloom, .95f, picture);
}

// A sprig out of focus that reaches in from an edge and may hide part of the bird.
void PaintOccluder(const Season& season, Random* random, Picture* picture) {
  const float side = static_cast<float>(picture->cols);
  const bool left = random->Chance(.5f);
  const Point root(left ? -.05f * side : 1.05f * side, random->Uniform(.1f, 1.05f) * side);
  const Point aim(random->Uniform(.3f, .7f) * side, random->Uniform(.3f, .75f) * side);
  const Point way = aim - root;
  PaintSprig(root, way * (1 / std::hypot(way.x, way.y)), random->Uniform(.3f, .62f) * side,
             season.leaf, season.bloom, random->Uniform(1.2f, 5), random, picture);
}

void PaintSnowfall(Random* random, Picture* picture) {
  const float side = static_cast<float>(picture->cols);
  Mask flakes = Mask::zeros(picture->size());
  for (int i = 0; i < 40; ++i) {
    AddDisc({random->Uniform(0, side), random->Uniform(0, side)},
            random->Uniform(.003f, .010f) * side, &flakes);
  }
  Paint(Soft(flakes, 1.1f), Colour(255, 255, 255), .85f, picture);
}

// A slow random field in -1 .. 1.
cv::Mat1f SlowNoise(cv::Size size, int cells, Random* random) {
  cv::Mat1f coarse(cells, cells), smooth;
  for (float& value : coarse) value = random->Uniform(-1, 1);
  cv::resize(coarse, smooth, size, 0, 0, cv::INTER_CUBIC);
  return smooth;
}

Picture Wobbled(const Picture& picture, Random* random) {
  const float reach = .0045f * static_cast<float>(picture.cols);
  cv::Mat1f x = SlowNoise(picture.size(), 26, random), y = SlowNoise(picture.size(), 26, random);
  for (int row = 0; row < picture.rows; ++row) {
    for (int column = 0; column < picture.cols; ++column) {
      x(row, column) = static_cast<float>(column) + reach * x(row, column);
      y(row, column) = static_cast<float>(row) + reach * y(row, column);
    }
  }
  Picture wobbled;
  cv::remap(picture, wobbled, x, y, cv::INTER_LINEAR, cv::BORDER_REPLICATE);
  return wobbled;
}

}  // namespace

void PaintInFront(const Scene& scene, Habitat habitat, const Anatomy& bird,
                  const Picture& without_bird, Random* random, Picture* picture) {
  if (habitat == Habitat::kSwimming || habitat == Habitat::kWading) {
    Reflect(bird.ground_y - (habitat == Habitat::kWading ? .05f * bird.unit : 0), without_bird,
            random, picture);
    PaintRings(bird, random, picture);
  } else if (habitat == Habitat::kGround) {
    PaintGrassInFront(scene, bird.ground_y, random, picture);
  }
  if (random->Chance(.38f)) PaintOccluder(scene.season, random, picture);
  if (scene.season.snow && random->Chance(.7f)) PaintSnowfall(random, picture);
}

Picture Finish(const Scene& scene, const Picture& picture, int side, Random* random) {
  Picture small;
  cv::resize(Wobbled(picture, random), small, cv::Size(side, side), 0, 0, cv::INTER_AREA);
  const cv::Mat1f wash = SlowNoise(small.size(), 9, random);
  const float exposure = random->Uniform(.93f, 1.07f);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const float u = 2 * static_cast<float>(x) / static_cast<float>(side) - 1;
      const float v = 2 * static_cast<float>(y) / static_cast<float>(side) - 1;
      const float corner = 1 - .11f * std::pow(u * u + v * v, 1.5f);
      const float paper = random->Bell(2.2f) + 4.5f * wash(y, x);
      cv::Vec3b& pixel = small(y, x);
      for (int c = 0; c < 3; ++c) {
        const float value = 128 + scene.light.contrast * (static_cast<float>(pixel[c]) - 128);
        pixel[c] =
            cv::saturate_cast<uchar>(value * scene.light.tint[c] * exposure * corner + paper);
      }
    }
  }
  return small;
}

}  // namespace privatemail::client::samples
