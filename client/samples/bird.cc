#include <cmath>

#include "client/samples/species.h"

namespace privatemail::client::samples {
namespace {

const Colour kWhite(255, 255, 255);

Point At(const Anatomy& bird, float ahead, float above) {
  return bird.head + bird.look * (ahead * bird.head_radius) +
         bird.crown * (above * bird.head_radius);
}

Mask HeadMask(const Anatomy& bird, const Picture& picture) {
  Mask around = Mask::zeros(picture.size());
  AddDisc(bird.head, 1.22f * bird.head_radius, &around);
  return Both(around, TubeMask(picture, bird.trunk));
}

void PaintMarkingsOfHead(const Species& species, const Anatomy& bird, Picture* picture) {
  const Markings& markings = species.markings;
  const Plumage& plumage = species.plumage;
  const Mask head = HeadMask(bird, *picture);
  const float r = bird.head_radius;
  const auto lay = [&](const Mask& mask, const Colour& colour, float opacity) {
    Paint(Both(Soft(mask, std::max(1.f, .07f * r)), head), colour, opacity, picture);
  };
  if (markings.cheek) {
    Mask cheek = Mask::zeros(picture->size());
    AddDisc(At(bird, .12f, -.38f), .44f * r, &cheek);
    lay(cheek, Mix(plumage.belly, kWhite, .4f), .9f);
  }
  if (markings.cap) {
    lay(TubeMask(*picture, {{At(bird, .75f, .75f), .34f * r},
                            {At(bird, 0, 1), .62f * r},
                            {At(bird, -.95f, .5f), .56f * r}}),
        plumage.accent, .92f);
  }
  if (markings.bib) {
    Mask bib = Mask::zeros(picture->size());
    AddEllipse(At(bird, .62f, -.72f), .42f * r, .5f * r, 0, &bib);
    lay(bib, plumage.accent, .92f);
  }
  if (markings.mask) {
    lay(TubeMask(*picture, {{At(bird, 1, .02f), .08f * r},
                            {At(bird, .35f, .16f), .22f * r},
                            {At(bird, -.5f, .10f), .20f * r},
                            {At(bird, -1, -.1f), .1f * r}}),
        plumage.accent, .92f);
  }
}

void AddMandible(const Anatomy& bird, const Build& build, float root_above, float root_below,
                 float length, Mask* mask) {
  const float root = .82f, r = bird.head_radius / bird.unit, droop = build.beak_curve * length;
  const auto at = [&](float ahead, float above) { return At(bird, root + ahead / r, above / r); };
  std::vector<Point> outline;
  constexpr int kSteps = 10;
  for (int i = 0; i <= kSteps; ++i) {
    const float t = static_cast<float>(i) / kSteps;
    outline.push_back(at(length * t, root_above * (1 - t * t) - droop * t * t));
  }
  for (int i = kSteps; i >= 0; --i) {
    const float t = static_cast<float>(i) / kSteps;
    outline.push_back(at(length * t, root_below * (1 - t * t) - droop * t * t));
  }
  AddPolygon(outline, mask);
}

void PaintBeak(const Species& species, const Anatomy& bird, Point to_light, Picture* picture) {
  const Build& build = species.build;
  const float half = build.beak_depth * .5f;
  Mask upper = Mask::zeros(picture->size()), lower = upper.clone();
  AddMandible(bird, build, .1f * half, -half, build.beak_length * .94f, &lower);
  AddMandible(bird, build, half * 1.15f, -.02f * half, build.beak_length, &upper);
  Paint(lower, Times(species.plumage.beak, .68f), 1, picture);
  Paint(upper, species.plumage.beak, 1, picture);
  ShadeRound(upper, to_light, std::max(1.5f, .35f * half * bird.unit), .8f, picture);
}

void PaintEye(const Species& species, Point at, float radius, Picture* picture) {
  const auto disc = [&](Point centre, float r, const Colour& colour, float opacity) {
    Mask mask = Mask::zeros(picture->size());
    AddDisc(centre, r, &mask);
    Paint(mask, colour, opacity, picture);
  };
  const bool on_dark = species.markings.mask || species.markings.cap;
  disc(at, radius * 1.3f,
       on_dark ? Mix(species.plumage.belly, kWhite, .4f) : Times(species.plumage.accent, .8f), .8f);
  disc(at, radius, species.plumage.iris, 1);
  disc(at, radius * .66f, Colour(18, 12, 10), 1);
  disc(at + Point(-.3f, -.34f) * radius, std::max(.9f, radius * .27f), kWhite, .95f);
}

// An owl's: discs around two eyes, a small beak between, tufts for ears.
void PaintFace(const Species& species, const Anatomy& bird, Point to_light, Picture* picture) {
  const Plumage& plumage = species.plumage;
  const float r = bird.head_radius;
  const Mask head = HeadMask(bird, *picture);
  const Point right(bird.look.x < 0 ? -1.f : 1.f, 0), down(0, 1);
  const Point face = bird.head + right * (.12f * r) + down * (.06f * r);
  Mask rim = Mask::zeros(picture->size()), disc = rim.clone(), beak = rim.clone();
  for (const float side : {-1.f, 1.f}) {
    AddEllipse(face + right * (side * .38f * r), .47f * r, .58f * r, 90, &rim);
    AddEllipse(face + right * (side * .38f * r), .40f * r, .50f * r, 90, &disc);
    Mask tuft =
        TubeMask(*picture, {{bird.head + right * (side * .55f * r) - down * (.6f * r), .2f * r},
                            {bird.head + right * (side * .85f * r) - down * (1.2f * r), .04f * r}});
    Paint(tuft, Mix(plumage.back, plumage.accent, .35f), 1, picture);
  }
  Paint(Both(Soft(rim, 1.2f), head), Mix(plumage.accent, plumage.wing, .3f), .85f, picture);
  Paint(Soft(disc, 1.2f), Mix(plumage.belly, kWhite, .3f), .95f, picture);
  ShadeRound(disc, to_light, .18f * r, .5f, picture);
  for (const float side : {-1.f, 1.f}) {
    PaintEye(species, face + right * (side * .36f * r) - down * (.02f * r), .23f * r, picture);
  }
  AddPolygon({face - right * (.1f * r) + down * (.12f * r),
              face + right * (.1f * r) + down * (.12f * r), face + down * (.46f * r)},
             &beak);
  Paint(beak, plumage.beak, 1, picture);
}

void PaintCrest(const Species& species, const Anatomy& bird, Picture* picture) {
  const Build& build = species.build;
  Mask feathers = Mask::zeros(picture->size()), tips = feathers.clone();
  for (int i = 0; i < build.crest_feathers; ++i) {
    const float place = static_cast<float>(i) - .5f * static_cast<float>(build.crest_feathers - 1);
    const float angle = (build.crest_angle + 11 * place) * static_cast<float>(CV_PI) / 180;
    const Point along = bird.look * std::cos(angle) + bird.crown * std::sin(angle);
    const Point root = bird.head + along * (.7f * bird.head_radius);
    const float length = build.crest_length * bird.unit * (1 - .05f * std::abs(place));
    const float thick = .026f * bird.unit;
    const Point sag = bird.crown * (-.12f * length * std::abs(std::cos(angle)));
    AddTube({{root, thick},
             {root + along * (.6f * length), thick * .8f},
             {root + along * length + sag, thick * .3f}},
            &feathers);
    AddTube(
        {{root + along * (.8f * length), thick * .8f}, {root + along * length + sag, thick * .4f}},
        &tips);
  }
  Paint(feathers, Mix(species.plumage.back, species.plumage.accent, .35f), 1, picture);
  Paint(tips, species.plumage.accent, .85f, picture);
}

void PaintHead(const Species& species, const Anatomy& bird, Point to_light, Picture* picture) {
  if (species.build.faces_viewer) return PaintFace(species, bird, to_light, picture);
  PaintMarkingsOfHead(species, bird, picture);
  PaintBeak(species, bird, to_light, picture);
  PaintEye(species, At(bird, .36f, .2f), species.build.eye * .8f * bird.head_radius, picture);
}

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

Point Rotated(Point direction, float degrees) {
  const float angle = degrees * static_cast<float>(CV_PI) / 180;
  return {direction.x * std::cos(angle) - direction.y * std::sin(angle),
          direction.x * std::sin(angle) + direction.y * std::cos(angle)};
}

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
