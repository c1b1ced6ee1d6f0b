#include "tests/testing/sample_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

constexpr double kEpsilons[] = {0.1, 0.5, 1, 4, 16};

FigurePoint Point(double x, double y, double half_band) {
  FigurePoint point;
  point.x = x;
  point.y = y;
  if (half_band > 0) {
    point.low = std::max(0.0, y - half_band);
    point.high = std::min(1.0, y + half_band);
  }
  return point;
}

FigureSeries Level(const std::string& name, double y) {
  return {name, Mark::kReference, {Point(1, y, 0)}};
}

Figure Recall() {
  Figure figure;
  figure.id = "recall-epsilon";
  figure.title = "Recall@8 against epsilon";
  figure.x = {"epsilon (smaller is more private)", true, NAN, NAN, {}};
  figure.y = {"recall@8", false, 0, 1, {}};
  FigureSeries proven = {"PrivateMail, proven", Mark::kLine, {}};
  FigureSeries published = {"PrivateMail, as published", Mark::kLine, {}};
  for (const double epsilon : kEpsilons) {
    proven.points.push_back(Point(epsilon, epsilon / (2 + epsilon), 0.024));
    published.points.push_back(Point(epsilon, epsilon / (1 + epsilon), 0.024));
  }
  figure.panels = {{"", {Level("random guess", 0.077), proven, published}}};
  figure.words = {"Recall rises with epsilon.", "Bands are 95 % intervals."};
  return figure;
}

Figure Attacks() {
  Figure figure;
  figure.id = "attacks";
  figure.title = "Attackers' advantage over guessing, and what the guarantee allows";
  figure.x = {"", false, NAN, NAN, {"nearest dummy", "label inference", "feature inversion"}};
  figure.y = {"advantage", false, 0, 1, {}};
  FigureSeries measured = {"measured", Mark::kBars, {}};
  FigureSeries allowed = {"allowed by the guarantee", Mark::kBars, {}};
  for (int i = 0; i < 3; ++i) {
    measured.points.push_back(Point(i, 0.04 + 0.03 * i, 0.02));
    allowed.points.push_back(Point(i, 0.46 - 0.1 * i, 0));
  }
  figure.panels = {{"", {measured, allowed}}};
  figure.words = {"The strongest attacker reaches 0.1."};
  return figure;
}

FigurePanel Cloud(const std::string& title, double spread) {
  std::mt19937 generator(7);
  std::normal_distribution<double> normal;
  FigureSeries cloud = {"gallery", Mark::kScatter, {}};
  for (int32_t i = 0; i < 60; ++i) {
    FigurePoint point = Point(i % 20 + spread * normal(generator), spread * normal(generator), 0);
    point.group = i % 20;
    cloud.points.push_back(point);
  }
  return {title, {cloud}};
}

Figure Alignment() {
  Figure figure;
  figure.id = "alignment";
  figure.title = "Embeddings before and after alignment";
  figure.x = {"first coordinate", false, NAN, NAN, {}};
  figure.y = {"second coordinate", false, NAN, NAN, {}};
  figure.panels = {Cloud("before: residual 0.93", 0.9), Cloud("after: residual 0.41", 0.4)};
  figure.words = {"Alignment takes the residual from 0.93 to 0.41."};
  return figure;
}

Figure Variance() {
  Figure figure;
  figure.id = "variance";
  figure.title = "Variance of bounded Gaussian noise against epsilon";
  figure.x = {"epsilon", true, NAN, NAN, {}};
  figure.y = {"variance", true, NAN, NAN, {}};
  FigureSeries classical = {"classical Gaussian", Mark::kLine, {}};
  FigureSeries exact = {"bounded, exact", Mark::kLine, {}};
  for (const double epsilon : kEpsilons) {
    classical.points.push_back(Point(epsilon, 23.5 / (epsilon * epsilon), 0));
    exact.points.push_back(Point(epsilon, 2.9 / (epsilon * epsilon), 0));
  }
  classical.points[0].y = std::numeric_limits<double>::infinity();
  exact.points[3].y = std::numeric_limits<double>::quiet_NaN();
  figure.panels = {{"", {classical, exact}}};
  figure.words = {"The exact calibration needs less variance."};
  return figure;
}

}  // namespace

Report SampleReport() {
  Report report;
  report.title = "A sample report";
  report.about = {{"Data", "synthetic"}, {"Retrieved", "k = 8"}};
  report.settings = {{"--bandwidth (s)", "6"}, {"--alpha", "0.6"}, {"--steps (T)", "5"}};
  report.figures = {Recall(), Attacks(), Alignment(), Variance()};
  return report;
}

}  // namespace privatemail::client
