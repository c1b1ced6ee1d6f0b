#include "client/evaluation/report/plot_points.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

constexpr size_t kMostPoints = 24;  // on one line, beside its last: more would hide it
constexpr double kTouching = 8;     // pixels between the middles of two points
constexpr double kStep = 9;         // from one point to the next beside it

// One point of a line, and what the line does on either side of it.
struct Vertex {
  size_t line = 0;
  Spot spot;
  Spot before;  // itself where the line begins or has a gap
  Spot after;
};

Spot OnLine(const Vertex& vertex, double shift) {
  const Spot& end = shift < 0 ? vertex.before : vertex.after;
  const double run = end.x - vertex.spot.x;
  const double rise = run == 0 ? 0 : (end.y - vertex.spot.y) / run;
  return {vertex.spot.x + shift, vertex.spot.y + rise * shift};
}

std::vector<Vertex> VerticesOf(const FigureSeries& series, size_t line, const PlotFrame& frame) {
  const std::vector<FigurePoint> points = InOrder(series.points);
  const size_t stride = (points.size() + kMostPoints - 1) / kMostPoints;
  std::vector<Vertex> vertices;
  const auto spot_or = [&](size_t i, Spot instead) {
    return i < points.size() && IsDrawn(points[i]) ? frame.At(points[i].x, points[i].y) : instead;
  };
  for (size_t i = 0; i < points.size(); ++i) {
    const bool shown = i % stride == 0 || i + 1 == points.size();
    if (!shown || !IsDrawn(points[i])) continue;
    const Spot spot = frame.At(points[i].x, points[i].y);
    vertices.push_back({.line = line,
                        .spot = spot,
                        .before = spot_or(i - 1, spot),  // beyond the end where i is 0
                        .after = spot_or(i + 1, spot)});
  }
  return vertices;
}

// Where the points of one x stand beside each other.
class Column {
 public:
  void Add(const Vertex& vertex) { vertices_.push_back(vertex); }

  // room: to the next column. begins, ends: nothing lies on that side.
  void Place(double room, bool begins, bool ends, std::vector<std::vector<Spot>>* places) {
    std::stable_sort(
        vertices_.begin(), vertices_.end(),
        [](const Vertex& one, const Vertex& other) { return one.spot.y < other.spot.y; });
    for (size_t first = 0, end = 0; first < vertices_.size(); first = end) {
      end = first + 1;
      while (end < vertices_.size() &&
             vertices_[end].spot.y - vertices_[end - 1].spot.y < kTouching) {
        ++end;
      }
      std::sort(vertices_.begin() + static_cast<std::ptrdiff_t>(first),
                vertices_.begin() + static_cast<std::ptrdiff_t>(end),
                [](const Vertex& one, const Vertex& other) { return one.line < other.line; });
      const auto count = static_cast<double>(end - first);
      const double step = std::min(kStep, .9 * room / count);
      const double left = begins ? 0 : ends ? 1 - count : (1 - count) / 2;
      for (size_t i = first; i < end; ++i) {
        const double shift = step * (left + static_cast<double>(i - first));
        (*places)[vertices_[i].line].push_back(OnLine(vertices_[i], shift));
      }
    }
  }

 private:
  std::vector<Vertex> vertices_;
};

}  // namespace

bool IsDrawn(const FigurePoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

std::vector<FigurePoint> InOrder(std::vector<FigurePoint> points) {
  // NaN has no place in an order.
  const auto finite = std::stable_partition(
      points.begin(), points.end(), [](const auto& point) { return std::isfinite(point.x); });
  points.erase(finite, points.end());
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& left, const auto& right) { return left.x < right.x; });
  return points;
}

std::vector<std::vector<Spot>> PlacePoints(const FigurePanel& panel, const PlotFrame& frame) {
  std::map<double, Column> columns;  // by x on paper
  size_t lines = 0;
  for (const FigureSeries& series : panel.series) {
    if (series.mark != Mark::kLine) continue;
    for (const Vertex& vertex : VerticesOf(series, lines, frame))
      columns[vertex.spot.x].Add(vertex);
    ++lines;
  }
  std::vector<std::vector<Spot>> places(lines);
  for (auto column = columns.begin(); column != columns.end(); ++column) {
    const auto next = std::next(column);
    const bool begins = column == columns.begin();
    const bool ends = next == columns.end();
    double room = frame.box.width;
    if (!begins) room = std::min(room, column->first - std::prev(column)->first);
    if (!ends) room = std::min(room, next->first - column->first);
    column->second.Place(room, begins && !ends, ends && !begins, &places);
  }
  return places;
}

}  // namespace privatemail::client
