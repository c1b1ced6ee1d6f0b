#include "client/samples/anatomy.h"

#include <cmath>

namespace privatemail::client::samples {
namespace {

Point Direction(float degrees) {
  const float angle = degrees * static_cast<float>(CV_PI) / 180;
  return {std::cos(angle), std::sin(angle)};
}

Point LeftOf(Point direction) { return {-direction.y, direction.x}; }

// The neck's knots between shoulder and head, and the head's middle.
void GrowNeck(const Build& build, const Pose& pose, Point shoulder, Anatomy* bird) {
  const float length = build.neck_length * pose.neck_stretch + build.head * .55f;
  const Point along = Direction(build.neck_angle + pose.neck);
  const Point back = LeftOf(along);
  const float bend = build.neck_bend * length;
  bird->head = shoulder + along * length;
  if (build.neck_length > .25f) {
    const float thick = build.neck_thickness;
    bird->trunk.push_back(
        {shoulder + along * (.28f * length) - back * bend, .45f * bird->depth + .5f * thick});
    bird->trunk.push_back({shoulder + along * (.55f * length), thick * 1.08f});
    bird->trunk.push_back({shoulder + along * (.82f * length) + back * (.7f * bend), thick * .95f});
  } else {
    bird->trunk.push_back(
        {shoulder + along * (.5f * length), (build.neck_thickness + build.head) * .5f});
  }
  bird->trunk.push_back({bird->head, build.head});
  // Without it the crown would have a corner where the widening stops.
  bird->trunk.push_back({bird->head + along * (.2f * build.head), .88f * build.head});
}

void GrowUnderside(size_t body_knots, Anatomy* bird) {
  for (size_t i = 1; i + 1 < bird->trunk.size(); ++i) {
    const Point run = bird->trunk[i + 1].at - bird->trunk[i - 1].at;
    const Point back = LeftOf(run * (1 / std::max(1e-6f, std::hypot(run.x, run.y))));
    const Knot& knot = bird->trunk[i];
    const float low = i < body_knots ? .52f : .45f;
    bird->underside.push_back({knot.at - back * (low * knot.radius), .72f * knot.radius});
  }
}

// The bird around the origin, one unit long, facing right, y up.
Anatomy Assemble(const Build& build, const Pose& pose) {
  Anatomy bird;
  bird.forward = Direction(build.posture + pose.posture);
  bird.up = LeftOf(bird.forward);
  const float d = bird.depth = build.depth * pose.plumpness;
  bird.trunk = {{bird.On(-.60f, .10f * d), .22f * d},
                {bird.On(-.40f, .02f * d), .62f * d},
                {bird.On(-.10f, -.06f * d), d},
                {bird.On(.20f, -.04f * d), .96f * d},
                {bird.On(.40f, .10f * d), .72f * d}};
  const size_t body_knots = bird.trunk.size();
  GrowNeck(build, pose, bird.On(.40f, .18f * d), &bird);
  GrowUnderside(body_knots, &bird);
  bird.head_radius = build.head;
  const Point straight = Direction(pose.head);
  bird.look = pose.looks_back ? Point(-straight.x, straight.y) : straight;
  bird.crown = pose.looks_back ? -LeftOf(bird.look) : LeftOf(bird.look);
  bird.tail = bird.On(-.56f, .12f * d);
  bird.tail_direction = Direction(build.posture + pose.posture + 180 - build.tail_lift - pose.tail);
  bird.hip = bird.On(-.06f, -.5f * d);
  const bool swims = build.habitat == Habitat::kSwimming;
  const float middle = bird.On(-.06f, 0).y;
  bird.ground_y = swims ? middle - .42f * d : middle - .93f * d - build.leg_length;
  return bird;
}

// The corners of the box around an assembled bird.
std::vector<Point> Reach(const Build& build, const Anatomy& bird) {
  std::vector<Point> points = {bird.head + bird.look * (build.head + build.beak_length),
                               bird.tail + bird.tail_direction * build.tail_length,
                               bird.head + bird.crown * (build.head + .6f * build.crest_length),
                               {bird.hip.x, bird.ground_y}};
  for (const Knot& knot : bird.trunk) {
    const Point corner(knot.radius, knot.radius);
    points.push_back(knot.at - corner);
    points.push_back(knot.at + corner);
  }
  return points;
}

}  // namespace

Pose StrikePose(const Build& build, float picture_side, Random* random) {
  Pose pose;
  pose.picture_side = picture_side;
  pose.faces_left = random->Chance(.5f);
  pose.looks_back = !build.faces_viewer && random->Chance(.1f);
  pose.posture = random->Bell(build.habitat == Habitat::kSwimming ? 2.f : 6.f);
  pose.neck = random->Bell(build.neck_length > .25f ? 9.f : 6.f);
  pose.head = random->Bell(9) + (build.faces_viewer ? 0 : 3.f);
  pose.tail = random->Bell(8);
  pose.neck_stretch = random->Uniform(.82f, 1.12f);
  pose.plumpness = random->Uniform(.92f, 1.1f);
  const float drift = .045f * picture_side;
  pose.centre = Point(.5f * picture_side + random->Bell(drift),
                      (build.habitat == Habitat::kSwimming ? .5f : .53f) * picture_side +
                          random->Bell(.6f * drift));
  pose.extent = picture_side * random->Uniform(.68f, .88f);
  return pose;
}

Anatomy PoseBird(const Build& build, const Pose& pose) {
  Anatomy bird = Assemble(build, pose);
  Point low(1e9f, 1e9f), high(-1e9f, -1e9f);
  for (const Point& point : Reach(build, bird)) {
    low = {std::min(low.x, point.x), std::min(low.y, point.y)};
    high = {std::max(high.x, point.x), std::max(high.y, point.y)};
  }
  const Point middle = (low + high) * .5f;
  const float scale = pose.extent / std::max(high.x - low.x, high.y - low.y);
  const float side = pose.faces_left ? -1.f : 1.f;
  // However it drifted, the whole bird stays in the picture.
  const auto inside = [&](float at, float extent) {
    const float half = .5f * extent * scale + .02f * pose.picture_side;
    return half > .5f * pose.picture_side ? .5f * pose.picture_side
                                          : std::clamp(at, half, pose.picture_side - half);
  };
  const Point centre(inside(pose.centre.x, high.x - low.x), inside(pose.centre.y, high.y - low.y));
  const auto place = [&](Point* p) {
    *p = centre + Point(side * (p->x - middle.x), middle.y - p->y) * scale;
  };
  const auto turn = [&](Point* p) { *p = {side * p->x, -p->y}; };
  for (Point* point : {&bird.centre, &bird.head, &bird.tail, &bird.hip}) place(point);
  for (Point* point : {&bird.forward, &bird.up, &bird.look, &bird.crown, &bird.tail_direction}) {
    turn(point);
  }
  for (auto* knots : {&bird.trunk, &bird.underside}) {
    for (Knot& knot : *knots) {
      place(&knot.at);
      knot.radius *= scale;
    }
  }
  bird.ground_y = centre.y + (middle.y - bird.ground_y) * scale;
  bird.unit = scale;
  bird.depth *= scale;
  bird.head_radius *= scale;
  return bird;
}

}  // namespace privatemail::client::samples
