#include "client/samples/foliage.h"

#include <cmath>

namespace privatemail::client::samples {

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

}  // namespace privatemail::client::samples
