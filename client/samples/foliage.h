// Leaves, blades and twigs. Private to this room.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_FOLIAGE_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_FOLIAGE_H_

#include "client/samples/canvas.h"

namespace privatemail::client::samples {

// A pointed leaf from `root` along a unit vector.
void AddLeaf(Point root, Point direction, float length, Mask* mask);

// A curved stalk from `root`, `length` pixels up, its tip `lean` pixels aside.
void AddBlade(Point root, float length, float lean, float thickness, Mask* mask);

// A twig along `direction` with leaves in two tones and now and then a blossom, out of focus by
// `blur` pixels (0: sharp).
void PaintSprig(Point root, Point direction, float length, const Colour& leaf, const Colour& bloom,
                float blur, Random* random, Picture* picture);

}  // namespace privatemail::client::samples

#endif  // PRIVATEMAIL_CLIENT_SAMPLES_FOLIAGE_H_
