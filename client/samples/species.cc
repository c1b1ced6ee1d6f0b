#include "client/samples/species.h"

#include <cmath>
#include <iterator>

namespace privatemail::client::samples {
namespace {

struct Kind {
  const char* noun;
  Build build;
};

constexpr Habitat kBranch = Habitat::kBranch, kGround = Habitat::kGround,
                  kWading = Habitat::kWading, kSwimming = Habitat::kSwimming;

// clang-format off
constexpr Kind kKinds[] = {
    // habitat, faces viewer, posture, depth, neck: length, thickness, angle, bend, head,
    // beak: length, depth, curve, tail: length, spread, fork, lift, leg, crest: n, length, angle,
    // eye, wing
    {"heron",      {kWading,   false, 36, .23f, .90f, .070f, 80, .17f, .125f, .44f, .085f, .00f, .28f, 16, 0, -10, .85f, 3, .34f, 196, .21f, 1.00f}},
    {"crane",      {kWading,   false, 24, .26f, 1.0f, .065f, 84, .05f, .115f, .30f, .070f, .00f, .40f, 40, 0, -34, .95f, 5, .15f, 140, .22f, 1.00f}},
    {"ibis",       {kWading,   false, 24, .28f, .48f, .080f, 62, .10f, .130f, .54f, .065f, .34f, .26f, 20, 0,  -6, .58f, 0, .00f,   0, .22f, 1.00f}},
    {"owl",        {kBranch,   true,  76, .36f, .12f, .300f, 84, .00f, .330f, .13f, .110f, .30f, .34f, 20, 0,   6, .14f, 2, .20f,  75, .30f, 1.00f}},
    {"wren",       {kBranch,   false, 18, .35f, .14f, .220f, 42, .00f, .240f, .19f, .055f, .08f, .46f, 22, 0,  62, .28f, 0, .00f,   0, .24f, .88f}},
    {"kingfisher", {kBranch,   false, 58, .30f, .12f, .250f, 62, .00f, .285f, .60f, .115f, .00f, .22f, 18, 0,  -4, .11f, 5, .17f, 165, .22f, .95f}},
    {"duck",       {kSwimming, false,  7, .30f, .32f, .130f, 70, .06f, .185f, .27f, .110f, -.1f, .26f, 30, 0,  16, .00f, 0, .00f,   0, .22f, .98f}},
    {"swan",       {kSwimming, false,  8, .31f, 1.0f, .080f, 86, .16f, .135f, .22f, .090f, .05f, .24f, 26, 0,  20, .00f, 0, .00f,   0, .20f, 1.05f}},
    {"grebe",      {kSwimming, false,  4, .25f, .52f, .075f, 84, .05f, .140f, .26f, .060f, .00f, .10f, 30, 0,  20, .00f, 6, .17f, 150, .24f, .92f}},
    {"finch",      {kBranch,   false, 42, .30f, .14f, .240f, 52, .00f, .235f, .16f, .150f, .10f, .56f, 16, .22f, 0, .20f, 0, .00f,   0, .22f, 1.00f}},
    {"robin",      {kBranch,   false, 46, .37f, .10f, .280f, 56, .00f, .265f, .14f, .060f, .04f, .46f, 14, 0,   6, .36f, 0, .00f,   0, .25f, .95f}},
    {"parakeet",   {kBranch,   false, 66, .26f, .12f, .220f, 68, .00f, .230f, .16f, .190f, .75f, 1.1f, 12, -.5f, 2, .10f, 0, .00f,   0, .22f, 1.08f}},
    {"pheasant",   {kGround,   false, 20, .31f, .40f, .115f, 62, .06f, .150f, .14f, .080f, .18f, 1.3f, 12, -.5f, 10, .38f, 2, .12f, 165, .24f, .95f}},
    {"jay",        {kBranch,   false, 36, .29f, .16f, .220f, 50, .00f, .235f, .22f, .105f, .06f, .78f, 22, -.1f, -4, .28f, 6, .27f, 140, .22f, 1.00f}},
    {"swallow",    {kBranch,   false, 40, .25f, .10f, .220f, 46, .00f, .210f, .10f, .075f, .05f, .85f, 26, .62f, -8, .09f, 0, .00f,   0, .22f, 1.40f}},
    {"hoopoe",     {kGround,   false, 28, .26f, .24f, .140f, 54, .03f, .170f, .50f, .060f, .22f, .50f, 24, 0,   0, .30f, 9, .40f, 112, .22f, 1.02f}},
    {"plover",     {kGround,   false, 20, .32f, .16f, .200f, 56, .00f, .235f, .17f, .060f, .00f, .28f, 14, 0,  -3, .52f, 0, .00f,   0, .27f, 1.00f}},
    {"quail",      {kGround,   false, 26, .40f, .12f, .250f, 62, .00f, .200f, .12f, .090f, .28f, .18f, 24, 0, -16, .24f, 2, .24f,  70, .25f, .88f}},
};

struct Palette {
  const char* adjective;
  uint32_t back, wing, belly, accent;
};

constexpr Palette kPalettes[] = {
    {"amber",    0xC07F2E, 0x8A521E, 0xF6E2B4, 0x3B2416}, {"azure",    0x3F92D2, 0x1F5F9E, 0xF4C08A, 0x13314F},
    {"crimson",  0xB2303A, 0x6B1F2C, 0xEBC0AA, 0x2A1216}, {"ivory",    0xF0E9D9, 0xCFC2A8, 0xFFFDF6, 0x4A4238},
    {"slate",    0x66747F, 0x434F5A, 0xDDE2E5, 0x1F252C}, {"moss",     0x71863F, 0x4B5D2B, 0xE9E6B8, 0x2E3618},
    {"teal",     0x219690, 0x145F63, 0xF2DCAC, 0x0C3438}, {"rust",     0xAF552C, 0x75371E, 0xF3CFA6, 0x33180E},
    {"violet",   0x7552A3, 0x4B3470, 0xDCCBEA, 0x25173B}, {"golden",   0xEBBB3D, 0xA97A20, 0xFFF3C8, 0x2B2926},
    {"cobalt",   0x2E4FAF, 0x1C2F70, 0xC9D8F0, 0xE8B23A}, {"rose",     0xDD8D9C, 0xA95D70, 0xFCE6E3, 0x4A2431},
    {"ebony",    0x303239, 0x1C1D23, 0x767983, 0xEAE5D8}, {"cinnamon", 0x96623F, 0x633E27, 0xEAD3B5, 0x24160E},
    {"silver",   0xB3BDC4, 0x7F8C96, 0xF5F7F8, 0x2D3840}, {"emerald",  0x2F9C5C, 0x1C6340, 0xE6EFB2, 0xB8322F},
    {"saffron",  0xE88C2D, 0xA35617, 0xFFE3B0, 0x35302C}, {"plum",     0x7C3A5C, 0x4E213B, 0xE9C9CF, 0x230E1A},
    {"sand",     0xD3BC92, 0x9D8560, 0xFBF4E0, 0x51412C}, {"copper",   0xBD6C3C, 0x2E6B66, 0xF2D9B8, 0x1D2B2B},
    {"indigo",   0x3C3F86, 0x25285A, 0xE0A97A, 0x12132E}, {"olive",    0x8B8542, 0x5A5627, 0xF2E9A6, 0x26240F},
    {"coral",    0xEE7B62, 0xB14A3E, 0xFDE5D3, 0x2E4756}, {"frost",    0xA9CFE0, 0x5F93B0, 0xF7FBFC, 0x274455},
};
// clang-format on

constexpr int kKindCount = std::size(kKinds), kPaletteCount = std::size(kPalettes);
static_assert(kKindCount * kPaletteCount >= kMostSpecies);

// Two of a kind are not quite the same size.
Build Varied(const Build& kind, Random* random) {
  Build build = kind;
  for (float* length : {&build.depth, &build.neck_length, &build.neck_thickness, &build.head,
                        &build.beak_length, &build.beak_depth, &build.tail_length,
                        &build.tail_spread, &build.leg_length, &build.crest_length, &build.wing}) {
    *length *= random->Uniform(.9f, 1.1f);
  }
  build.posture += random->Uniform(-5, 5);
  build.tail_lift += random->Uniform(-4, 4);
  return build;
}

Plumage PlumageOf(const Palette& palette, Random* random) {
  static const std::vector<uint32_t> kHorn = {0x2E2A28, 0xE3A234, 0xC9573C,
                                              0x77726A, 0xDD813D, 0x4B4F57};
  static const std::vector<uint32_t> kIrises = {0x2A1B10, 0x4A2A12, 0xE5A823, 0xB5451F, 0x1A1512};
  return {Hex(palette.back),         Hex(palette.wing),        Hex(palette.belly),
          Hex(palette.accent),       Hex(random->Pick(kHorn)), Hex(random->Pick(kHorn)),
          Hex(random->Pick(kIrises))};
}

Markings InventMarkings(Random* random) {
  Markings markings;
  switch (random->Index(5)) {
    case 0:
      markings.cap = true;
      break;
    case 1:
      markings.mask = true;
      break;
    case 2:
      markings.cheek = true;
      break;
    case 3:
      markings.cap = markings.bib = true;
      break;
    default:
      markings.mask = markings.cheek = true;
  }
  markings.collar = random->Chance(.25f);
  markings.breast = random->Chance(.45f);
  markings.belly = static_cast<Belly>(random->Index(4));
  markings.wing_bars = random->Index(3);
  markings.wing_spots = random->Chance(.3f);
  markings.tail_tips = random->Chance(.5f);
  return markings;
}

std::vector<int> ShuffledIndices(int count, Random* random) {
  std::vector<int> indices(count);
  for (int i = 0; i < count; ++i) indices[i] = i;
  random->Shuffle(&indices);
  return indices;
}

Point Direction(float degrees) {
  const float angle = degrees * static_cast<float>(CV_PI) / 180;
  return {std::cos(angle), std::sin(angle)};
}

Point LeftOf(Point direction) { return {-direction.y, direction.x}; }

void GrowNeck(const Build& build, const Pose& pose, Point shoulder, Anatomy* bird) {
  const float length = build.neck_length * pose.neck_stretch + build.head * .55f;
  const Point along = Direction(build.neck_angle + pose.neck);
  const Point back = LeftOf(along);
  const float bend = build.neck_bend * length;
  bird->head = shoulder + along * length;
  if (build.neck_length > .25f) {
    const float thick = build.neck_thickness;
    bird->trunk.push_back(
        {shoulder + along * (.28f * length) - back * bend, .45f * bird->depth + .5f * thick});
    bird->trunk.push_back({shoulder + along * (.55f * length), thick * 1.08f});
    bird->trunk.push_back({shoulder + along * (.82f * length) + back * (.7f * bend), thick * .95f});
  } else {
    bird->trunk.push_back(
        {shoulder + along * (.5f * length), (build.neck_thickness + build.head) * .5f});
  }
  bird->trunk.push_back({bird->head, build.head});
  // Without it the crown would have a corner where the widening stops.
  bird->trunk.push_back({bird->head + along * (.2f * build.head), .88f * build.head});
}

void GrowUnderside(size_t body_knots, Anatomy* bird) {
  for (size_t i = 1; i + 1 < bird->trunk.size(); ++i) {
    const Point run = bird->trunk[i + 1].at - bird->trunk[i - 1].at;
    const Point back = LeftOf(run * (1 / std::max(1e-6f, std::hypot(run.x, run.y))));
    const Knot& knot = bird->trunk[i];
    const float low = i < body_knots ? .52f : .45f;
    bird->underside.push_back({knot.at - back * (low * knot.radius), .72f * knot.radius});
  }
}

// The bird around the origin, one unit long, facing right, y up.
Anatomy Assemble(const Build& build, const Pose& pose) {
  Anatomy bird;
  bird.forward = Direction(build.posture + pose.posture);
  bird.up = LeftOf(bird.forward);
  const float d = bird.depth = build.depth * pose.plumpness;
  bird.trunk = {{bird.On(-.60f, .10f * d), .22f * d},
                {bird.On(-.40f, .02f * d), .62f * d},
                {bird.On(-.10f, -.06f * d), d},
                {bird.On(.20f, -.04f * d), .96f * d},
                {bird.On(.40f, .10f * d), .72f * d}};
  const size_t body_knots = bird.trunk.size();
  GrowNeck(build, pose, bird.On(.40f, .18f * d), &bird);
  GrowUnderside(body_knots, &bird);
  bird.head_radius = build.head;
  const Point straight = Direction(pose.head);
  bird.look = pose.looks_back ? Point(-straight.x, straight.y) : straight;
  bird.crown = pose.looks_back ? -LeftOf(bird.look) : LeftOf(bird.look);
  bird.tail = bird.On(-.56f, .12f * d);
  bird.tail_direction = Direction(build.posture + pose.posture + 180 - build.tail_lift - pose.tail);
  bird.hip = bird.On(-.06f, -.5f * d);
  const bool swims = build.habitat == Habitat::kSwimming;
  const float middle = bird.On(-.06f, 0).y;
  bird.ground_y = swims ? middle - .42f * d : middle - .93f * d - build.leg_length;
  return bird;
}

std::vector<Point> Reach(const Build& build, const Anatomy& bird) {
  std::vector<Point> points = {bird.head + bird.look * (build.head + build.beak_length),
                               bird.tail + bird.tail_direction * build.tail_length,
                               bird.head + bird.crown * (build.head + .6f * build.crest_length),
                               {bird.hip.x, bird.ground_y}};
  for (const Knot& knot : bird.trunk) {
    const Point corner(knot.radius, knot.radius);
    points.push_back(knot.at - corner);
    points.push_back(knot.at + corner);
  }
  return points;
}

}  // namespace

std::vector<Species> InventSpecies(int count, uint64_t seed) {
  Random random(seed, 0, 0);
  const std::vector<int> kinds = ShuffledIndices(kKindCount, &random);
  const std::vector<int> palettes = ShuffledIndices(kPaletteCount, &random);
  std::vector<Species> species;
  for (int i = 0; i < count; ++i) {
    const int round = i / kKindCount;
    const Kind& kind = kKinds[kinds[i % kKindCount]];
    // 7 is prime to the number of palettes: a kind meets another palette in every round.
    const Palette& palette = kPalettes[palettes[(i % kKindCount + 7 * round) % kPaletteCount]];
    Random own(seed, 1, i);
    species.push_back({std::string(palette.adjective) + "-" + kind.noun, Varied(kind.build, &own),
                       PlumageOf(palette, &own), InventMarkings(&own)});
  }
  return species;
}

Pose StrikePose(const Build& build, float picture_side, Random* random) {
  Pose pose;
  pose.picture_side = picture_side;
  pose.faces_left = random->Chance(.5f);
  pose.looks_back = !build.faces_viewer && random->Chance(.1f);
  pose.posture = random->Bell(build.habitat == Habitat::kSwimming ? 2.f : 6.f);
  pose.neck = random->Bell(build.neck_length > .25f ? 9.f : 6.f);
  pose.head = random->Bell(9) + (build.faces_viewer ? 0 : 3.f);
  pose.tail = random->Bell(8);
  pose.neck_stretch = random->Uniform(.82f, 1.12f);
  pose.plumpness = random->Uniform(.92f, 1.1f);
  const float drift = .045f * picture_side;
  pose.centre = Point(.5f * picture_side + random->Bell(drift),
                      (build.habitat == Habitat::kSwimming ? .5f : .53f) * picture_side +
                          random->Bell(.6f * drift));
  pose.extent = picture_side * random->Uniform(.68f, .88f);
  return pose;
}

Anatomy PoseBird(const Build& build, const Pose& pose) {
  Anatomy bird = Assemble(build, pose);
  Point low(1e9f, 1e9f), high(-1e9f, -1e9f);
  for (const Point& point : Reach(build, bird)) {
    low = {std::min(low.x, point.x), std::min(low.y, point.y)};
    high = {std::max(high.x, point.x), std::max(high.y, point.y)};
  }
  const Point middle = (low + high) * .5f;
  const float scale = pose.extent / std::max(high.x - low.x, high.y - low.y);
  const float side = pose.faces_left ? -1.f : 1.f;
  // However it drifted, the whole bird stays in the picture.
  const auto inside = [&](float at, float extent) {
    const float half = .5f * extent * scale + .02f * pose.picture_side;
    return half > .5f * pose.picture_side ? .5f * pose.picture_side
                                          : std::clamp(at, half, pose.picture_side - half);
  };
  const Point centre(inside(pose.centre.x, high.x - low.x), inside(pose.centre.y, high.y - low.y));
  const auto place = [&](Point* p) {
    *p = centre + Point(side * (p->x - middle.x), middle.y - p->y) * scale;
  };
  const auto turn = [&](Point* p) { *p = {side * p->x, -p->y}; };
  for (Point* point : {&bird.centre, &bird.head, &bird.tail, &bird.hip}) place(point);
  for (Point* point : {&bird.forward, &bird.up, &bird.look, &bird.crown, &bird.tail_direction}) {
    turn(point);
  }
  for (auto* knots : {&bird.trunk, &bird.underside}) {
    for (Knot& knot : *knots) {
      place(&knot.at);
      knot.radius *= scale;
    }
  }
  bird.ground_y = centre.y + (middle.y - bird.ground_y) * scale;
  bird.unit = scale;
  bird.depth *= scale;
  bird.head_radius *= scale;
  return bird;
}

}  // namespace privatemail::client::samples
