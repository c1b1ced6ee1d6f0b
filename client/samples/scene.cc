#include "client/samples/scene.h"

#include <cmath>
#include <opencv2/imgproc.hpp>

namespace privatemail::client::samples {
namespace {

void AddLeaf(Point root, Point direction, float length, Mask* mask) {
  const Point side(-direction.y, direction.x);
  std::vector<Point> outline;
  constexpr int kSteps = 9;
  for (const float edge : {1.f, -1.f}) {
    for (int i = 0; i < kSteps; ++i) {
      const float t = static_cast<float>(i) / kSteps;
      const float along = edge > 0 ? t : 1 - t;
      const float half = .27f * std::sin(static_cast<float>(CV_PI) * std::pow(along, .8f));
      outline.push_back(root + direction * (along * length) + side * (edge * half * length));
    }
  }
  AddPolygon(outline, mask);
}

void AddBlade(Point root, float length, float lean, float thickness, Mask* mask) {
  AddTube({{root, thickness},
           {root + Point(.25f * lean, -.55f * length), thickness * .85f},
           {root + Point(lean, -length), thickness * .25f}},
          mask);
}

// A twig along `direction` with leaves in two tones and now and then a blossom, out of focus by
// `blur` pixels (0: sharp).
void PaintSprig(Point root, Point direction, float length, const Colour& leaf, const Colour& bloom,
                float blur, Random* random, Picture* picture) {
  Mask twig = Mask::zeros(picture->size()), pale = twig.clone(), deep = twig.clone(),
       blossoms = twig.clone();
  const Point side(-direction.y, direction.x);
  const float bow = random->Bell(.12f) * length;
  const auto at = [&](float t) {
    return root + direction * (t * length) + side * (bow * t * (1 - t) * 4);
  };
  AddTube({{at(0), .022f * length}, {at(.5f), .015f * length}, {at(1), .006f * length}}, &twig);
  const int leaves = 7 + random->Index(5);
  for (int i = 0; i < leaves; ++i) {
    const float t = (static_cast<float>(i) + .6f) / static_cast<float>(leaves);
    const float turn = (i % 2 == 0 ? 1.f : -1.f) * random->Uniform(.5f, 1.1f);
    const Point along(direction.x * std::cos(turn) - direction.y * std::sin(turn),
                      direction.x * std::sin(turn) + direction.y * std::cos(turn));
    AddLeaf(at(t), along, random->Uniform(.17f, .29f) * length,
            random->Chance(.5f) ? &pale : &deep);
    if (random->Chance(.16f)) AddDisc(at(t) + along * (.05f * length), .05f * length, &blossoms);
  }
  const auto lay = [&](const Mask& mask, const Colour& colour) {
    Paint(blur > 0 ? Soft(mask, blur) : mask, colour, .94f, picture);
  };
  lay(twig, Mix(Hex(0x5A4030), leaf, .2f));
  lay(deep, Times(leaf, .72f));
  lay(pale, Mix(leaf, Hex(0xFFFBE0), .16f));
  lay(blossoms, bloom);
}

const Colour kPureWhite(255, 255, 255);

const std::vector<Season>& Seasons() {
  static const std::vector<Season> seasons = {
      {Hex(0xDDEBC8), Hex(0xA3C78A), Hex(0x6E9A58), Hex(0x6FA043), Hex(0xFBF3F5)},  // spring
      {Hex(0x9CCBEA), Hex(0xD4EAF4), Hex(0xBFD9A8), Hex(0x5E9246), Hex(0xFFE37A)},  // summer sky
      {Hex(0xF2D29A), Hex(0xD59A55), Hex(0x94602F), Hex(0xC8702B), Hex(0xE9B23C)},  // autumn
      {Hex(0xDFE8F0), Hex(0xC4D2E1), Hex(0xEDF2F6), Hex(0x6C8078), Hex(0xB7343A), true},  // winter
      {Hex(0x4A4478), Hex(0xB9708A), Hex(0xF0B98A), Hex(0x4F4A56), Hex(0xF5C6A0)},        // dusk
      {Hex(0xEFE6DA), Hex(0xD0D8D2), Hex(0xA3B4A8), Hex(0x7F9A7A), Hex(0xF2E6D8)},        // mist
      {Hex(0x3F6150), Hex(0x5F8560), Hex(0x2B4638), Hex(0x5E8F50), Hex(0xE8E2C0)},  // deep wood
      {Hex(0xF7E3E6), Hex(0xEBC3CE), Hex(0xB4C9A2), Hex(0x8DB070), Hex(0xF48FAE)},  // blossom
      {Hex(0xFBE8C4), Hex(0xF2C987), Hex(0xB9A35C), Hex(0x8F9A42), Hex(0xFFF0B8)},  // golden field
  };
  return seasons;
}

const std::vector<Light>& Lights() {
  static const std::vector<Light> lights = {
      {Colour(.95f, 1.f, 1.03f), 1.03f},   // morning
      {Colour(1.f, 1.f, 1.f), 1.06f},      // noon
      {Colour(.80f, .98f, 1.10f), 1.04f},  // late sun
      {Colour(1.03f, .98f, .95f), .88f},   // overcast
      {Colour(.98f, .84f, .86f), .94f},    // twilight
  };
  return lights;
}

void PaintBackdrop(const Season& season, Random* random, Picture* picture) {
  constexpr int kCoarse = 8;
  Picture coarse(picture->rows / kCoarse, picture->cols / kCoarse);
  for (int y = 0; y < coarse.rows; ++y) {
    const float t = 2 * (static_cast<float>(y) + .5f) / static_cast<float>(coarse.rows);
    const Colour colour =
        t < 1 ? Mix(season.top, season.middle, t) : Mix(season.middle, season.bottom, t - 1);
    coarse.row(y).setTo(cv::Vec3b(colour));
  }
  const float side = static_cast<float>(coarse.cols);
  for (int i = 0; i < 16; ++i) {
    Mask blob = Mask::zeros(coarse.size());
    AddDisc({random->Uniform(0, side), random->Uniform(0, side)},
            random->Uniform(.08f, .24f) * side, &blob);
    const std::vector<Colour> colours = {season.top, season.bottom, season.leaf, season.middle};
    Paint(Soft(blob, 2.5f), random->Pick(colours), random->Uniform(.2f, .6f), &coarse);
  }
  cv::resize(coarse, *picture, picture->size(), 0, 0, cv::INTER_CUBIC);
  const float wide = static_cast<float>(picture->cols);
  const int lights = random->Index(14);
  for (int i = 0; i < lights; ++i) {
    Mask disc = Mask::zeros(picture->size());
    AddDisc({random->Uniform(0, wide), random->Uniform(0, .8f * wide)},
            random->Uniform(.02f, .065f) * wide, &disc);
    Paint(Soft(disc, 2), Mix(season.top, kPureWhite, random->Uniform(.2f, .7f)),
          random->Uniform(.12f, .34f), picture);
  }
}

void PaintReeds(const Season& season, float ground_y, bool sharp, Random* random,
                Picture* picture) {
  const float side = static_cast<float>(picture->cols);
  const int reeds = 5 + random->Index(9);
  const float around = random->Uniform(0, side), spread = random->Uniform(.12f, .3f) * side;
  Mask pale = Mask::zeros(picture->size()), deep = pale.clone(), heads = pale.clone();
  for (int i = 0; i < reeds; ++i) {
    const Point root(around + random->Bell(spread), ground_y + random->Uniform(-.04f, .03f) * side);
    const float length = random->Uniform(.35f, .85f) * side, lean = random->Bell(.09f * side);
    AddBlade(root, length, lean, .008f * side, random->Chance(.5f) ? &pale : &deep);
    if (!random->Chance(.25f)) continue;
    const Point top = root + Point(lean, -length);
    AddTube({{top, .013f * side}, {top + Point(-.1f * lean, .12f * length), .013f * side}}, &heads);
  }
  const float blur = sharp ? .7f : random->Uniform(2.f, 4.5f);
  Paint(Soft(deep, blur), Mix(Times(season.leaf, .7f), season.middle, sharp ? .1f : .4f), .9f,
        picture);
  Paint(Soft(pale, blur), Mix(season.leaf, season.top, sharp ? .15f : .4f), .9f, picture);
  Paint(Soft(heads, blur), Mix(Hex(0x6B4426), season.middle, sharp ? .1f : .35f), .9f, picture);
}

void PaintWater(const Season& season, float waterline, Random* random, Picture* picture) {
  const float side = static_cast<float>(picture->cols);
  const float shore = waterline - random->Uniform(.10f, .22f) * side;
  Mask water = Mask::zeros(picture->size());
  AddPolygon(
      {{-9, shore}, {side + 9, shore + random->Bell(2)}, {side + 9, side + 9}, {-9, side + 9}},
      &water);
  const Colour far = Mix(season.top, Hex(0xBFD6E2), .35f);
  const Colour near = Mix(Mix(season.bottom, Hex(0x3F6F8C), .5f), season.middle, .25f);
  PaintWith(
      Soft(water, 2.5f), .94f,
      [&](int, int y) {
        return Mix(far, near,
                   std::clamp((static_cast<float>(y) - shore) / (side - shore), 0.f, 1.f));
      },
      picture);
  Mask light = Mask::zeros(picture->size()), dark = light.clone();
  for (int i = 0; i < 46; ++i) {
    const float depth = random->Uniform(.03f, 1);
    AddEllipse({random->Uniform(0, side), shore + depth * (side - shore)},
               (.002f + .005f * depth) * side, random->Uniform(.03f, .14f) * side * (.4f + depth),
               0, random->Chance(.55f) ? &light : &dark);
  }
  Paint(Soft(light, 1.2f), kPureWhite, .30f, picture);
  Paint(Soft(dark, 1.2f), Times(near, .72f), .34f, picture);
}

void PaintBranch(const Scene& scene, const Anatomy& bird, Random* random, Picture* picture) {
  const float side = static_cast<float>(picture->cols);
  const float thick = random->Uniform(.016f, .03f) * side, slope = random->Bell(.10f);
  const float middle = bird.ground_y + .9f * thick;
  std::vector<Knot> knots;
  for (int i = 0; i <= 5; ++i) {
    const float x = (-.1f + .24f * static_cast<float>(i)) * side;
    const float wave = std::abs(x - bird.hip.x) < .2f * side ? 0 : random->Bell(.018f) * side;
    knots.push_back({{x, middle + slope * (x - bird.hip.x) + wave},
                     thick * (1.25f - .12f * static_cast<float>(i))});
  }
  for (int i = 0; i < 1 + random->Index(4); ++i) {
    const Knot& knot = knots[random->Index(6)];
    const float angle = random->Uniform(-2.6f, -.5f);
    PaintSprig(knot.at, {std::cos(angle), std::sin(angle)}, random->Uniform(.2f, .42f) * side,
               scene.season.leaf, scene.season.bloom, random->Chance(.5f) ? 0 : 1.5f, random,
               picture);
  }
  const Mask branch = TubeMask(*picture, knots);
  Paint(branch, Mix(Hex(random->Chance(.5f) ? 0x6A4C38 : 0x7A6A5C), scene.season.middle, .12f), 1,
        picture);
  Grain(branch, {1, slope}, .08f * side, 240, .3f, random, picture);
  ShadeRound(branch, {.25f * scene.to_light.x, -.97f}, .9f * thick, 1.1f, picture);
  if (!scene.season.snow) return;
  for (Knot& knot : knots) {
    knot.at.y -= .75f * knot.radius;
    knot.radius *= .62f;
  }
  const Mask cap = TubeMask(*picture, knots);
  Paint(Soft(cap, .8f), Hex(0xFAFCFF), 1, picture);
  ShadeRound(cap, {0, -1}, .6f * thick, .45f, picture);
}

void PaintGround(const Scene& scene, const Anatomy& bird, Random* random, Picture* picture) {
  const float side = static_cast<float>(picture->cols);
  const float rise = random->Bell(.03f) * side;
  Mask ground = Mask::zeros(picture->size());
  std::vector<Point> outline = {{side + 9, side + 9}, {-9, side + 9}};
  for (int i = 0; i <= 12; ++i) {
    const float u = static_cast<float>(i) / 12;
    outline.emplace_back(-9 + u * (side + 18),
                         bird.ground_y - .015f * side + rise * std::sin(5 * u + rise) * .5f);
  }
  AddPolygon(outline, &ground);
  const bool snow = scene.season.snow;
  const Colour near =
      snow ? Hex(0xF6F9FC) : Mix(Times(scene.season.bottom, .8f), scene.season.leaf, .35f);
  Paint(Soft(ground, 2), near, .96f, picture);
  Grain(ground, {1, .05f}, .06f * side, 160, snow ? .05f : .16f, random, picture);
  Mask shadow = Mask::zeros(picture->size());
  AddEllipse({bird.centre.x, bird.ground_y + .015f * side}, .022f * side, .55f * bird.unit, 0,
             &shadow);
  Paint(Soft(shadow, 4), Colour(45, 35, 30), .34f, picture);
}

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

Scene ImagineScene(Random* random) {
  const float angle = random->Uniform(-2.5f, -.64f);
  return {random->Pick(Seasons()), random->Pick(Lights()), {std::cos(angle), std::sin(angle)}};
}

void PaintBehind(const Scene& scene, Habitat habitat, const Anatomy& bird, Random* random,
                 Picture* picture) {
  PaintBackdrop(scene.season, random, picture);
  const bool wet = habitat == Habitat::kWading || habitat == Habitat::kSwimming;
  if (wet) {
    PaintWater(scene.season, bird.ground_y, random, picture);
    PaintReeds(scene.season, bird.ground_y, false, random, picture);
    if (random->Chance(.5f)) PaintReeds(scene.season, bird.ground_y, true, random, picture);
  } else if (habitat == Habitat::kGround) {
    if (random->Chance(.5f)) PaintReeds(scene.season, bird.ground_y, false, random, picture);
    PaintGround(scene, bird, random, picture);
  } else {
    PaintBranch(scene, bird, random, picture);
  }
}

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
