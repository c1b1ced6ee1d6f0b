#include "client/samples/species.h"

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

}  // namespace privatemail::client::samples
