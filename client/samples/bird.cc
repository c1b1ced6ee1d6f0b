#include "client/samples/bird.h"

#include <cmath>

#include "client/samples/bird_head.h"
#include "client/samples/bird_wing.h"

namespace privatemail::client::samples {
namespace {

Point Rotated(Point direction, float degrees) {
  const float angle = degrees * static_cast<float>(CV_PI) / 180;
  return {direction.x * std::cos(angle) - direction.y * std::sin(angle),
          direction.x * std::sin(angle) + direction.y * std::cos(angle)};
}

// One leg from the hip to the ground, with toes.
void AddLeg(const Anatomy& bird, const Build& build, float shift, float thickness, Mask* mask) {
  const float side = bird.forward.x < 0 ? -1.f : 1.f;
  const Point hip = bird.hip + Point(shift * bird.unit, 0);
  const Point foot(hip.x + side * .02f * bird.unit, bird.ground_y);
  const float bend = build.leg_length > .5f ? -.06f : -.035f;  // a bird's ankle points backwards
  const Point ankle = (hip + foot) * .5f + Point(side * bend * bird.unit, 0);
  const float thin = thickness * bird.unit;
  AddTube({{hip, 2.2f * thin}, {ankle, 1.15f * thin}, {foot, thin}}, mask);
  const float toe = (.07f + .06f * build.leg_length) * bird.unit;
  for (const Point tip : {Point(side * toe, .12f * toe), Point(side * .75f * toe, .5f * toe),
                          Point(-side * .6f * toe, .2f * toe)}) {
    AddTube({{foot, thin * .95f}, {foot + tip, thin * .55f}}, mask);
  }
}

void PaintLegs(const Species& species, const Anatomy& bird, Picture* picture) {
  if (species.build.habitat == Habitat::kSwimming) return;
  const float thickness = species.build.leg_length > .5f ? .017f : .020f;
  Mask far = Mask::zeros(picture->size()), near = far.clone();
  AddLeg(bird, species.build, .09f, thickness, &far);
  AddLeg(bird, species.build, -.05f, thickness, &near);
  Paint(far, Times(species.plumage.leg, .62f), 1, picture);
  Paint(near, Times(species.plumage.leg, .95f), 1, picture);
}

void PaintTail(const Species& species, const Anatomy& bird, Point to_light, Picture* picture) {
  const Build& build = species.build;
  constexpr int kFeathers = 7;
  Mask tips = Mask::zeros(picture->size()), whole = tips.clone();
  for (int i = 0; i < kFeathers; ++i) {
    const float place = 2.f * static_cast<float>(i) / (kFeathers - 1) - 1;  // -1 .. 1
    const float shortened = build.tail_fork > 0 ? build.tail_fork * (1 - std::abs(place))
                                                : -build.tail_fork * std::abs(place);
    const Point along = Rotated(bird.tail_direction, place * build.tail_spread * .5f);
    const float length = build.tail_length * bird.unit * (1 - shortened);
    const Point side(-along.y, along.x);
    const Point root = bird.tail + side * (place * .18f * bird.depth);
    const float wide = .155f * bird.depth * (build.tail_length > .9f ? .85f : 1.f);
    const std::vector<Knot> feather = {{root, wide},
                                       {root + along * (.6f * length), wide * 1.1f},
                                       {root + along * length, wide * .55f}};
    AddTube({{root + along * (.86f * length), wide}, {root + along * length, wide * .6f}}, &tips);
    AddTube(feather, &whole);
    const float tone = i % 2 == 0 ? .86f : 1.08f;
    Paint(TubeMask(*picture, feather),
          Times(Mix(species.plumage.wing, species.plumage.back, .3f), tone), 1, picture);
  }
  if (species.markings.tail_tips) {
    Paint(Both(Soft(tips, 1.2f), whole), Mix(species.plumage.accent, species.plumage.belly, .35f),
          .8f, picture);
  }
  ShadeRound(whole, to_light, .22f * bird.depth, .7f, picture);
}

void AddBellyPattern(Belly pattern, const Anatomy& bird, Random* random, Mask* mask) {
  const float d = bird.depth / bird.unit;
  const int count = pattern == Belly::kSpots ? 46 : pattern == Belly::kStreaks ? 34 : 10;
  for (int i = 0; i < count; ++i) {
    const float t = random->Uniform(-.38f, .42f), o = random->Uniform(-.95f, -.05f) * d;
    if (pattern == Belly::kSpots) {
      AddDisc(bird.On(t, o), random->Uniform(.011f, .021f) * bird.unit, mask);
    } else if (pattern == Belly::kStreaks) {
      AddTube(
          {{bird.On(t, o), .013f * bird.unit}, {bird.On(t - .09f, o * .98f), .004f * bird.unit}},
          mask);
    } else {
      const float at = -.38f + .08f * static_cast<float>(i);
      const float wide = .012f * bird.unit;
      AddTube({{bird.On(at, -.05f * d), wide * .5f},
               {bird.On(at + .025f, -.55f * d), wide},
               {bird.On(at, -1.05f * d), wide}},
              mask);
    }
  }
}

void PaintMarkings(const Species& species, const Anatomy& bird, const Mask& body, Random* random,
                   Picture* picture) {
  const Markings& markings = species.markings;
  const Plumage& plumage = species.plumage;
  if (markings.breast) {
    Mask patch = Mask::zeros(picture->size());
    const float d = bird.depth / bird.unit;
    AddTube({{bird.On(.44f, -.35f * d), .62f * bird.depth},
             {bird.On(.18f, -.55f * d), .5f * bird.depth}},
            &patch);
    Paint(Both(Soft(patch, .14f * bird.depth), body), Mix(plumage.back, plumage.beak, .55f), .85f,
          picture);
  }
  if (markings.belly != Belly::kPlain) {
    Mask pattern = Mask::zeros(picture->size());
    AddBellyPattern(markings.belly, bird, random, &pattern);
    Paint(Both(Soft(pattern, .8f), body), plumage.accent, .62f, picture);
  }
  if (markings.collar) {
    const Knot& low = bird.trunk[4];
    const Knot& high = bird.trunk[5];
    const Point middle = (low.at * .35f + high.at * .65f);
    const Point run = high.at - low.at;
    const float wide = .85f * std::max(low.radius, high.radius);
    const Point across = Point(-run.y, run.x) * (wide / std::hypot(run.x, run.y));
    const Mask ring = TubeMask(*picture, {{middle - across, .085f * bird.depth},
                                          {middle, .11f * bird.depth},
                                          {middle + across, .085f * bird.depth}});
    Paint(Both(Soft(ring, 1), body), Mix(plumage.belly, Colour(255, 255, 255), .3f), .9f, picture);
  }
}

void PaintBody(const Species& species, const Anatomy& bird, Point to_light, Random* random,
               Picture* picture) {
  const Mask body = TubeMask(*picture, bird.trunk);
  const Plumage& plumage = species.plumage;
  // A little darker towards the tail, as plumage is.
  PaintWith(
      body, 1,
      [&](int x, int y) {
        const Point from = Point(static_cast<float>(x), static_cast<float>(y)) - bird.centre;
        const float along = from.dot(bird.forward) / bird.unit;
        return Mix(plumage.back, plumage.wing, std::clamp(.18f - .5f * along, 0.f, .45f));
      },
      picture);
  const Mask underside = Both(Soft(TubeMask(*picture, bird.underside), .16f * bird.depth), body);
  Paint(underside, plumage.belly, .95f, picture);
  PaintMarkings(species, bird, body, random, picture);
  Grain(body, -bird.forward, .11f * bird.unit, 260, .16f, random, picture);
  ShadeRound(body, to_light, .42f * bird.depth, .95f, picture);
}

}  // namespace

void PaintBird(const Species& species, const Anatomy& bird, Point to_light, Random* random,
               Picture* picture) {
  PaintLegs(species, bird, picture);
  PaintTail(species, bird, to_light, picture);
  if (!species.build.faces_viewer) PaintCrest(species, bird, picture);
  PaintBody(species, bird, to_light, random, picture);
  PaintWing(species, bird, to_light, random, picture);
  PaintHead(species, bird, to_light, picture);
}

}  // namespace privatemail::client::samples
