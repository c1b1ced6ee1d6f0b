#include "client/samples/bird_head.h"

#include <cmath>

namespace privatemail::client::samples {
namespace {

const Colour kWhite(255, 255, 255);

// A point of the head in units of its radius.
Point At(const Anatomy& bird, float ahead, float above) {
  return bird.head + bird.look * (ahead * bird.head_radius) +
         bird.crown * (above * bird.head_radius);
}

// The head with its way into the neck.
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

// One half of the beak: from the root along a curve to the tip.
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

}  // namespace

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

}  // namespace privatemail::client::samples
