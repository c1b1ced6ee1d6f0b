// Invented bird species, and the geometry of a posed bird. Internal to client/samples.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_SPECIES_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_SPECIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/samples/canvas.h"

namespace privatemail::client::samples {

enum class Habitat { kBranch, kGround, kWading, kSwimming };

// Lengths are in units of the body's length; angles in degrees, anticlockwise for a bird that faces
// right, 0 forward.
struct Build {
  Habitat habitat = Habitat::kBranch;
  bool faces_viewer = false;  // the head, as owls do
  float posture = 0;          // of the body
  float depth = 0;            // half the thickness of the body
  float neck_length = 0, neck_thickness = 0, neck_angle = 0;
  float neck_bend = 0;  // 0 straight, .2 an S
  float head = 0;       // radius
  float beak_length = 0, beak_depth = 0;
  float beak_curve = 0;  // downwards, share of the length
  float tail_length = 0;
  float tail_spread = 0;  // degrees between the outer feathers
  float tail_fork = 0;    // how much shorter the middle feathers are; negative: longer
  float tail_lift = 0;    // degrees above the line of the back
  float leg_length = 0;
  int crest_feathers = 0;
  float crest_length = 0, crest_angle = 0;
  float eye = 0;   // share of the head
  float wing = 0;  // length; beyond 1 it reaches past the body
};

struct Plumage {
  Colour back, wing, belly, accent, beak, leg, iris;
};

enum class Belly { kPlain, kSpots, kStreaks, kBars };

struct Markings {
  bool cap = false, mask = false, cheek = false, bib = false, collar = false, breast = false;
  bool tail_tips = false, wing_spots = false;
  Belly belly = Belly::kPlain;
  int wing_bars = 0;
};

struct Species {
  std::string name;  // "amber-heron"
  Build build;
  Plumage plumage;
  Markings markings;
};

constexpr int kMostSpecies = 200;

// `count` (1..kMostSpecies) species of different names. Every kind of bird occurs before one occurs
// twice; two of a kind differ in plumage, markings and a little in build.
std::vector<Species> InventSpecies(int count, uint64_t seed);

// Variation between two pictures of one species. Angles in degrees, added to those of the build.
struct Pose {
  bool faces_left = false;
  bool looks_back = false;
  float posture = 0, neck = 0, head = 0, tail = 0;
  float neck_stretch = 1;  // factors
  float plumpness = 1;
  float picture_side = 0;  // pixels
  Point centre;            // of the bird, pixels; moved if part of it would be outside
  float extent = 0;        // the longer side of its bounding box, pixels
};

Pose StrikePose(const Build& build, float picture_side, Random* random);

// All in pixels, y down; directions are unit vectors.
struct Anatomy {
  float unit = 1;               // one body length
  Point centre, forward, up;    // of the body: its middle, along it to the chest, towards its back
  float depth = 0;              // half the thickness of the body
  std::vector<Knot> trunk;      // tail to head, one tube
  std::vector<Knot> underside;  // the paler part of it
  Point head, look, crown;      // middle of the head, where the beak points, where the crest stands
  float head_radius = 0;
  Point tail, tail_direction;
  Point hip;
  float ground_y = 0;  // of the feet, or of the water for a bird that swims

  // A point of the body: `along` from the middle to the chest, `above` towards the back.
  Point On(float along, float above) const {
    return centre + forward * (along * unit) + up * (above * unit);
  }
};

Anatomy PoseBird(const Build& build, const Pose& pose);

// Paints the bird over what is there, lit from `to_light` (a unit vector, y down).
void PaintBird(const Species& species, const Anatomy& bird, Point to_light, Random* random,
               Picture* picture);

}  // namespace privatemail::client::samples

#endif  // PRIVATEMAIL_CLIENT_SAMPLES_SPECIES_H_
