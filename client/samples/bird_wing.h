// The folded wing. Private to this room.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_BIRD_WING_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_BIRD_WING_H_

#include "client/samples/anatomy.h"
#include "client/samples/species.h"

namespace privatemail::client::samples {

void PaintWing(const Species& species, const Anatomy& bird, Point to_light, Random* random,
               Picture* picture);

}  // namespace privatemail::client::samples

#endif  // PRIVATEMAIL_CLIENT_SAMPLES_BIRD_WING_H_
