// Where everything of a posed bird is in the picture. Private to this room.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_ANATOMY_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_ANATOMY_H_

#include <vector>

#include "client/samples/canvas.h"
#include "client/samples/species.h"

namespace privatemail::client::samples {

// What differs between two pictures of one species. Angles in degrees, added to those of the build.
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

}  // namespace privatemail::client::samples

#endif  // PRIVATEMAIL_CLIENT_SAMPLES_ANATOMY_H_
