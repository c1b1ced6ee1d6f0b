// Crest, face, beak and eyes. Private to this room.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_BIRD_HEAD_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_BIRD_HEAD_H_

#include "client/samples/anatomy.h"
#include "client/samples/species.h"

namespace privatemail::client::samples {

// The feathers behind the head, painted before the body.
void PaintCrest(const Species& species, const Anatomy& bird, Picture* picture);

void PaintHead(const Species& species, const Anatomy& bird, Point to_light, Picture* picture);

}  // namespace privatemail::client::samples

#endif  // PRIVATEMAIL_CLIENT_SAMPLES_BIRD_HEAD_H_
