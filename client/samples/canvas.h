// Reproducible variety for pictures: the same numbers on every machine and with every standard
// library, which leaves distributions to the implementation. Not for privacy noise.
#ifndef PRIVATEMAIL_CLIENT_SAMPLES_CANVAS_H_
#define PRIVATEMAIL_CLIENT_SAMPLES_CANVAS_H_

#include <cstdint>
#include <opencv2/core.hpp>
#include <random>
#include <utility>
#include <vector>

namespace privatemail::client::samples {

// A stream of draws. Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  // A stream of its own for a part of the work, so that parts do not shift each other.
  Random(uint64_t seed, uint64_t part, uint64_t piece)
      : bits_(Stir(Stir(Stir(seed) + part) + piece)) {}

  // In [low, high).
  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(static_cast<double>(bits_() >> 11) * 0x1p-53);
  }

  // 0 .. count - 1.
  int Index(int count) {
    return static_cast<int>(Uniform(0, 1) * static_cast<float>(count)) % count;
  }

  bool Chance(float probability) { return Uniform(0, 1) < probability; }

  // Bell-shaped (a sum of four uniforms): mean 0, standard deviation `spread`, within 3.5 of them.
  float Bell(float spread) {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += Uniform(-1, 1);
    return sum * spread * .8660254f;  // the sum has variance 4/3
  }

  template <typename T>
  const T& Pick(const std::vector<T>& choices) {
    return choices[Index(static_cast<int>(choices.size()))];
  }

  template <typename T>
  void Shuffle(std::vector<T>* items) {
    for (int i = static_cast<int>(items->size()) - 1; i > 0; --i) {
      std::swap((*items)[i], (*items)[Index(i + 1)]);
    }
  }

 private:
  // The finalizer of SplitMix64 (Steele, Lea, Flood 2014): near seeds give unrelated streams.
  static uint64_t Stir(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  std::mt19937_64 bits_;
};

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

void AddTube(const std::vector<Knot>& knots, Mask* mask);  // smoothed here
void AddDisc(Point centre, float radius, Mask* mask);
void AddEllipse(Point centre, float across, float along, float degrees, Mask* mask);
void AddPolygon(const std::vector<Point>& corners, Mask* mask);

// A new mask of `picture`'s size.
Mask TubeMask(const Picture& picture, const std::vector<Knot>& knots);

// `mask` out of focus.
Mask Soft(const Mask& mask, float stddev);

// The intersection of two masks.
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
