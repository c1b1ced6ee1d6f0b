#include "client/samples/canvas.h"

#include <cmath>
#include <opencv2/imgproc.hpp>

namespace privatemail::client::samples {
namespace {

constexpr int kFractionBits = 4;  // OpenCV draws at fixed-point coordinates

cv::Point Fixed(Point p) {
  constexpr float kOne = 1 << kFractionBits;
  return {static_cast<int>(std::lround(p.x * kOne)), static_cast<int>(std::lround(p.y * kOne))};
}

float CatmullRom(float a, float b, float c, float d, float t) {
  return b + .5f * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

cv::Rect BoundsOf(const Mask& mask) { return cv::boundingRect(mask); }

std::vector<Knot> Smooth(const std::vector<Knot>& knots) {
  constexpr int kSteps = 8;
  const int last = static_cast<int>(knots.size()) - 1;
  std::vector<Knot> curve;
  for (int i = 0; i < last; ++i) {
    const Knot &a = knots[std::max(i - 1, 0)], &b = knots[i], &c = knots[i + 1],
               &d = knots[std::min(i + 2, last)];
    for (int step = 0; step < kSteps; ++step) {
      const float t = static_cast<float>(step) / kSteps;
      curve.push_back({{CatmullRom(a.at.x, b.at.x, c.at.x, d.at.x, t),
                        CatmullRom(a.at.y, b.at.y, c.at.y, d.at.y, t)},
                       std::max(.2f, CatmullRom(a.radius, b.radius, c.radius, d.radius, t))});
    }
  }
  curve.push_back(knots[last]);
  return curve;
}

}  // namespace

Colour Hex(uint32_t red_green_blue) {
  return Colour(static_cast<float>(red_green_blue & 255),
                static_cast<float>(red_green_blue >> 8 & 255),
                static_cast<float>(red_green_blue >> 16 & 255));
}

void AddDisc(Point centre, float radius, Mask* mask) {
  const int fixed_radius = static_cast<int>(std::lround(radius * (1 << kFractionBits)));
  cv::circle(*mask, Fixed(centre), std::max(fixed_radius, 1), 255, cv::FILLED, cv::LINE_AA,
             kFractionBits);
}

void AddEllipse(Point centre, float across, float along, float degrees, Mask* mask) {
  std::vector<Point> corners;
  const float turn = degrees * static_cast<float>(CV_PI) / 180;
  for (int i = 0; i < 40; ++i) {
    const float angle = static_cast<float>(CV_2PI) * static_cast<float>(i) / 40;
    const float u = along * std::cos(angle), v = across * std::sin(angle);
    corners.push_back(centre + Point(u * std::cos(turn) - v * std::sin(turn),
                                     u * std::sin(turn) + v * std::cos(turn)));
  }
  AddPolygon(corners, mask);
}

void AddPolygon(const std::vector<Point>& corners, Mask* mask) {
  std::vector<cv::Point> fixed;
  fixed.reserve(corners.size());
  for (const Point& corner : corners) fixed.push_back(Fixed(corner));
  cv::fillPoly(*mask, std::vector<std::vector<cv::Point>>{fixed}, 255, cv::LINE_AA, kFractionBits);
}

void AddTube(const std::vector<Knot>& knots, Mask* mask) {
  const std::vector<Knot> curve = Smooth(knots);
  for (size_t i = 0; i < curve.size(); ++i) {
    // Between the ends of a thin tube the quads leave no gap that could be seen.
    constexpr float kThin = 2.5f;
    const bool end = i == 0 || i + 1 == curve.size();
    if (end || curve[i].radius > kThin) AddDisc(curve[i].at, curve[i].radius, mask);
    if (i == 0) continue;
    const Point step = curve[i].at - curve[i - 1].at;
    const float length = std::hypot(step.x, step.y);
    if (!(length > 0)) continue;
    const Point side(-step.y / length, step.x / length);
    const cv::Point quad[] = {Fixed(curve[i - 1].at + side * curve[i - 1].radius),
                              Fixed(curve[i].at + side * curve[i].radius),
                              Fixed(curve[i].at - side * curve[i].radius),
                              Fixed(curve[i - 1].at - side * curve[i - 1].radius)};
    cv::fillConvexPoly(*mask, quad, 4, 255, cv::LINE_AA, kFractionBits);
  }
}

Mask TubeMask(const Picture& picture, const std::vector<Knot>& knots) {
  Mask mask = Mask::zeros(picture.size());
  AddTube(knots, &mask);
  return mask;
}

Mask Soft(const Mask& mask, float stddev) {
  Mask soft = Mask::zeros(mask.size());
  const int reach = static_cast<int>(3 * stddev) + 4;
  const cv::Rect shape = BoundsOf(mask);
  const cv::Rect around = cv::Rect(shape.x - reach, shape.y - reach, shape.width + 2 * reach,
                                   shape.height + 2 * reach) &
                          cv::Rect({}, mask.size());
  if (shape.empty()) return soft;
  const cv::Mat sharp = mask(around);
  cv::Mat blurred = soft(around);
  if (stddev < 4) {
    cv::GaussianBlur(sharp, blurred, cv::Size(), stddev);
    return soft;
  }
  cv::Mat small;  // a wide blur has no detail that a quarter of the size could lose
  const cv::Size quarter(std::max(1, around.width / 4), std::max(1, around.height / 4));
  cv::resize(sharp, small, quarter, 0, 0, cv::INTER_AREA);
  cv::GaussianBlur(small, small, cv::Size(), stddev / 4);
  cv::resize(small, blurred, around.size(), 0, 0, cv::INTER_LINEAR);
  return soft;
}

Mask Both(const Mask& a, const Mask& b) {
  Mask both;
  cv::multiply(a, b, both, 1 / 255.);
  return both;
}

void Paint(const Mask& mask, const Colour& colour, float opacity, Picture* picture) {
  PaintWith(
      mask, opacity, [&](int, int) { return colour; }, picture);
}

void ShadeRound(const Mask& shape, Point to_light, float depth, float strength, Picture* picture) {
  const cv::Rect bounds = BoundsOf(shape);
  if (bounds.empty()) return;
  const Mask soft = Soft(shape, depth);
  const int dx = static_cast<int>(std::lround(to_light.x * depth));
  const int dy = static_cast<int>(std::lround(to_light.y * depth));
  const auto at = [&](int x, int y) {
    return static_cast<float>(
        soft(std::clamp(y, 0, soft.rows - 1), std::clamp(x, 0, soft.cols - 1)));
  };
  const Colour light(225, 245, 255), dark(70, 38, 30);
  for (int y = bounds.y; y < bounds.y + bounds.height; ++y) {
    for (int x = bounds.x; x < bounds.x + bounds.width; ++x) {
      if (shape(y, x) == 0) continue;
      const float lit = strength * (at(x - dx, y - dy) - at(x + dx, y + dy)) / 255;
      const float share = std::min(std::abs(lit), .85f) * static_cast<float>(shape(y, x)) / 255;
      cv::Vec3b& pixel = (*picture)(y, x);
      const Colour below(pixel[0], pixel[1], pixel[2]);
      const Colour mixed = Mix(below, lit > 0 ? light : dark, lit > 0 ? share * .6f : share * .8f);
      for (int c = 0; c < 3; ++c) pixel[c] = cv::saturate_cast<uchar>(mixed[c]);
    }
  }
}

void Grain(const Mask& shape, Point direction, float length, int strokes, float strength,
           Random* random, Picture* picture) {
  const cv::Rect bounds = BoundsOf(shape);
  if (bounds.empty()) return;
  Mask relief(bounds.size(), 128);
  for (int i = 0; i < strokes; ++i) {
    const Point from(random->Uniform(0, static_cast<float>(bounds.width)),
                     random->Uniform(0, static_cast<float>(bounds.height)));
    const float turn = random->Bell(.25f), reach = length * random->Uniform(.5f, 1.2f);
    const Point along(direction.x * std::cos(turn) - direction.y * std::sin(turn),
                      direction.x * std::sin(turn) + direction.y * std::cos(turn));
    cv::line(relief, Fixed(from), Fixed(from + along * reach), random->Uniform(60, 200),
             random->Chance(.4f) ? 2 : 1, cv::LINE_AA, kFractionBits);
  }
  cv::GaussianBlur(relief, relief, cv::Size(), .7);
  Picture patch = (*picture)(bounds);
  const Mask inside = shape(bounds);
  for (int y = 0; y < bounds.height; ++y) {
    for (int x = 0; x < bounds.width; ++x) {
      const float lift = strength * (static_cast<float>(relief(y, x)) - 128) *
                         static_cast<float>(inside(y, x)) / 255;
      for (int c = 0; c < 3; ++c) {
        patch(y, x)[c] = cv::saturate_cast<uchar>(static_cast<float>(patch(y, x)[c]) + lift);
      }
    }
  }
}

}  // namespace privatemail::client::samples
