// The painter's tools: soft-edged shapes as masks, and colour laid through a mask onto a picture.
// Private to this room. Coordinates are pixels, y down; colours are blue, green, red in 0..255.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_CANVAS_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_CANVAS_H_

#include <algorithm>
#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

#include "client/samples/random.h"

namespace privatemail::client::samples {

using Picture = cv::Mat3b;
using Mask = cv::Mat1b;  // 0 outside a shape, 255 inside
using Colour = cv::Vec3f;
using Point = cv::Point2f;

Colour Hex(uint32_t red_green_blue);

// `share` of b, the rest of a.
inline Colour Mix(const Colour& a, const Colour& b, float share) {
  return a * (1 - share) + b * share;
}

// The colour with each channel times `factor`.
inline Colour Times(const Colour& colour, float factor) { return colour * factor; }

// A point of a body's axis and how thick the body is there.
struct Knot {
  Point at;
  float radius = 0;
};

// The curve through the knots (Catmull-Rom), in steps fine enough to be drawn by circles.
std::vector<Knot> Smooth(const std::vector<Knot>& knots);

void AddTube(const std::vector<Knot>& knots, Mask* mask);  // smoothed here
void AddDisc(Point centre, float radius, Mask* mask);
void AddEllipse(Point centre, float across, float along, float degrees, Mask* mask);
void AddPolygon(const std::vector<Point>& corners, Mask* mask);

// A new mask of `picture`'s size.
Mask TubeMask(const Picture& picture, const std::vector<Knot>& knots);

// `mask` out of focus.
Mask Soft(const Mask& mask, float stddev);

// What lies in both.
Mask Both(const Mask& a, const Mask& b);

// Lays colour(x, y) onto the picture where the mask is, at `opacity`.
template <typename ColourAt>
void PaintWith(const Mask& mask, float opacity, ColourAt colour, Picture* picture) {
  for (int y = 0; y < picture->rows; ++y) {
    const uchar* cover = mask[y];
    cv::Vec3b* row = (*picture)[y];
    for (int x = 0; x < picture->cols; ++x) {
      if (cover[x] == 0) continue;
      const float share = opacity * static_cast<float>(cover[x]) / 255;
      const Colour below(row[x][0], row[x][1], row[x][2]);
      const Colour mixed = Mix(below, colour(x, y), share);
      for (int c = 0; c < 3; ++c) row[x][c] = cv::saturate_cast<uchar>(mixed[c]);
    }
  }
}

void Paint(const Mask& mask, const Colour& colour, float opacity, Picture* picture);

// Makes a flat shape round: lighter where its edge faces `to_light` (a unit vector), darker on the
// other side, over a border about `depth` pixels wide.
void ShadeRound(const Mask& shape, Point to_light, float depth, float strength, Picture* picture);

// Fine strokes along `direction` inside a shape, lighter and darker: plumage, bark.
void Grain(const Mask& shape, Point direction, float length, int strokes, float strength,
           Random* random, Picture* picture);

}  // namespace privatemail::client::samples

#endif  // PRIVATEMAIL_CLIENT_SAMPLES_CANVAS_H_
