// Paints a posed bird. Internal to client/samples.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_BIRD_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_BIRD_H_

#include "client/samples/canvas.h"
#include "client/samples/species.h"

namespace privatemail::client::samples {

// Paints the bird over what is there, lit from `to_light` (a unit vector, y down).
void PaintBird(const Species& species, const Anatomy& bird, Point to_light, Random* random,
               Picture* picture);

}  // namespace privatemail::client::samples

#endif  // PRIVATEMAIL_CLIENT_SAMPLES_BIRD_H_
