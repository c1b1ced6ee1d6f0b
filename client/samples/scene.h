// Everything around the bird: season, light, backdrop, what it stands on, what is in front of it.
// Internal to client/samples.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_SCENE_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_SCENE_H_

#include "client/samples/canvas.h"
#include "client/samples/species.h"

namespace privatemail::client::samples {

struct Season {
  Colour top, middle, bottom;  // of the backdrop
  Colour leaf, bloom;
  bool snow = false;
};

struct Light {
  Colour tint;         // factor of each channel
  float contrast = 1;  // around middle grey
};

struct Scene {
  Season season;
  Light light;
  Point to_light;  // unit vector, y down
};

// Drawn independently of the species: no scene gives it away.
Scene ImagineScene(Random* random);

// The backdrop, and the branch, ground or water that the bird will be on.
void PaintBehind(const Scene& scene, Habitat habitat, const Anatomy& bird, Random* random,
                 Picture* picture);

// Reflections in the water (`without_bird` is the picture before the bird), grass, leaves, snow.
void PaintInFront(const Scene& scene, Habitat habitat, const Anatomy& bird,
                  const Picture& without_bird, Random* random, Picture* picture);

// The finished picture, side x side: brush wobble, light, darker corners, paper.
Picture Finish(const Scene& scene, const Picture& picture, int side, Random* random);

}  // namespace privatemail::client::samples

#endif  // PRIVATEMAIL_CLIENT_SAMPLES_SCENE_H_
