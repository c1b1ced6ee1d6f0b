#include "client/evaluation/report/plot_frame.h"

#include <algorithm>

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

// Values of all points of the figure, and whether a mark occurs.
struct Needs {
  std::vector<double> x;
  std::vector<double> y;
  bool bars = false;
  bool scatter = false;
};

Needs Collect(const Figure& figure) {
  Needs needs;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      needs.bars |= series.mark == Mark::kBars;
      needs.scatter |= series.mark == Mark::kScatter;
      // One point of a reference is a level: it lies nowhere along x.
      const bool level = series.mark == Mark::kReference && series.points.size() == 1;
      for (const FigurePoint& point : series.points) {
        if (!level) needs.x.push_back(point.x);
        needs.y.insert(needs.y.end(), {point.y, point.low, point.high});
      }
    }
  }
  return needs;
}

// Far beyond an end that is given a coordinate would be no number that SVG knows.
double NearPlace(const AxisRange& range, double value) {
  constexpr double kFar = 100;  // plots
  return std::clamp(PlaceOn(range, value), -kFar, kFar);
}

}  // namespace

PlotScales FitScales(const Figure& figure) {
  Needs needs = Collect(figure);
  if (needs.bars && !figure.y.logarithmic) needs.y.push_back(0);
  PlotScales scales;
  scales.categories = !figure.x.categories.empty();
  scales.x = scales.categories
                 ? AxisRange{-0.5, static_cast<double>(figure.x.categories.size()) - 0.5, false}
                 : FitRange(figure.x, needs.x, needs.scatter ? AxisFit::kPadded : AxisFit::kTight);
  scales.y = FitRange(figure.y, needs.y, needs.scatter ? AxisFit::kPadded : AxisFit::kRounded);
  return scales;
}

double PlotFrame::Across(double value) const {
  return box.left + box.width * NearPlace(scales.across(), value);
}

double PlotFrame::Upward(double value) const {
  const double place = NearPlace(scales.upward(), value);
  return box.top + box.height * (scales.categories ? place : 1 - place);
}

Spot PlotFrame::At(double x, double y) const {
  if (scales.categories) return {Across(y), Upward(x)};
  return {Across(x), Upward(y)};
}

}  // namespace privatemail::client
