#include "client/samples/bird_wing.h"

#include <cmath>

namespace privatemail::client::samples {
namespace {

const Colour kWhite(255, 255, 255);

// Long feathers from the middle of the wing to its lower edge and tip.
void PaintFlightFeathers(const Species& species, const Anatomy& bird, const Mask& wing,
                         Picture* picture) {
  const float d = bird.depth / bird.unit, tip = -.84f * species.build.wing;
  Mask dark = Mask::zeros(picture->size()), light = dark.clone();
  constexpr int kFeathers = 8;
  for (int i = 0; i < kFeathers; ++i) {
    const float share = static_cast<float>(i) / (kFeathers - 1);
    const float end_t = -.12f + (tip + .12f) * share, end_o = (-.52f + .78f * share) * d;
    const float start_t = .16f - .34f * share, start_o = (.10f + .32f * share) * d;
    const Point start = bird.On(start_t, start_o), end = bird.On(end_t, end_o);
    const Point middle = bird.On((start_t + end_t) * .5f, (start_o + end_o) * .5f - .07f * d);
    const float thin = .008f * bird.unit;
    AddTube({{start, thin * .5f}, {middle, thin}, {end, thin * 1.1f}}, &dark);
    const Point shift = bird.up * (.022f * bird.unit);
    AddTube({{start + shift, thin * .3f}, {middle + shift, thin * .8f}, {end + shift, thin * .5f}},
            &light);
  }
  Paint(Both(Soft(dark, .6f), wing), Times(species.plumage.wing, .5f), .8f, picture);
  Paint(Both(Soft(light, .8f), wing), Mix(species.plumage.wing, kWhite, .5f), .5f, picture);
}

// Small feathers over the shoulder, in rows that overlap like tiles.
void PaintCoverts(const Species& species, const Anatomy& bird, const Mask& wing, Picture* picture) {
  const float d = bird.depth / bird.unit;
  constexpr int kRows = 4;
  for (int row = 0; row < kRows; ++row) {
    Mask edge = Mask::zeros(picture->size()), vane = edge.clone();
    const float t = -.06f + .095f * static_cast<float>(row);
    const float size = (.058f - .006f * static_cast<float>(row)) * bird.unit;
    for (int i = 0; i < 7; ++i) {
      const float o =
          (-.52f + .19f * static_cast<float>(i) + .09f * static_cast<float>(row % 2)) * d;
      const float bow = .05f * (o / d) * (o / d);
      AddDisc(bird.On(t - bow, o), size, &edge);
      AddDisc(bird.On(t - bow + .02f, o), size, &vane);
    }
    const float share = static_cast<float>(row) / kRows;
    const Colour base = Mix(species.plumage.wing, species.plumage.back, .25f + .6f * share);
    Paint(Both(edge, wing), Mix(base, kWhite, .34f), .75f, picture);
    Paint(Both(Soft(vane, .7f), wing), base, .9f, picture);
  }
}

void PaintWingMarks(const Species& species, const Anatomy& bird, const Mask& wing, Random* random,
                    Picture* picture) {
  const float d = bird.depth / bird.unit;
  Mask marks = Mask::zeros(picture->size());
  for (int bar = 0; bar < species.markings.wing_bars; ++bar) {
    const float t = .04f - .13f * static_cast<float>(bar);
    for (int i = 0; i < 12; ++i) {
      const float o = (-.55f + .11f * static_cast<float>(i)) * d;
      AddDisc(bird.On(t - .05f * (o / d) * (o / d), o), .029f * bird.unit, &marks);
    }
  }
  if (species.markings.wing_spots) {
    for (int i = 0; i < 22; ++i) {
      AddDisc(bird.On(random->Uniform(-.5f, .3f), random->Uniform(-.5f, .6f) * d),
              random->Uniform(.010f, .018f) * bird.unit, &marks);
    }
  }
  Paint(Both(Soft(marks, .8f), wing), Mix(species.plumage.belly, kWhite, .35f), .9f, picture);
}

}  // namespace

void PaintWing(const Species& species, const Anatomy& bird, Point to_light, Random* random,
               Picture* picture) {
  const float d = bird.depth / bird.unit, length = species.build.wing;
  const Mask wing = TubeMask(*picture, {{bird.On(.34f, .10f * d), .26f * bird.depth},
                                        {bird.On(.10f, .06f * d), .60f * bird.depth},
                                        {bird.On(-.20f, .14f * d), .54f * bird.depth},
                                        {bird.On(-.52f * length, .24f * d), .27f * bird.depth},
                                        {bird.On(-.86f * length, .22f * d), .03f * bird.depth}});
  Mask moved = Mask::zeros(wing.size());
  const int drop = std::max(1, static_cast<int>(.12f * bird.depth));
  wing.rowRange(0, wing.rows - drop).copyTo(moved.rowRange(drop, wing.rows));
  const Mask shadow = Both(Soft(moved, .08f * bird.depth), TubeMask(*picture, bird.trunk));
  Paint(shadow, Colour(50, 30, 25), .38f, picture);
  PaintWith(
      wing, 1,
      [&](int x, int y) {
        const Point from = Point(static_cast<float>(x), static_cast<float>(y)) - bird.centre;
        const float along = from.dot(bird.forward) / bird.unit;
        return Mix(species.plumage.back, species.plumage.wing,
                   std::clamp(.55f - 1.3f * along, 0.f, 1.f));
      },
      picture);
  PaintFlightFeathers(species, bird, wing, picture);
  PaintCoverts(species, bird, wing, picture);
  PaintWingMarks(species, bird, wing, random, picture);
  Grain(wing, -bird.forward, .08f * bird.unit, 90, .12f, random, picture);
  ShadeRound(wing, to_light, .2f * bird.depth, .75f, picture);
}

}  // namespace privatemail::client::samples
