#include "tests/testing/sample_report.h"

#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;

constexpr std::array<double, 9> kEpsilons = {0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32};

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

// Rises from chance to `top`, with half of the rise at epsilon = `middle`.
FigureSeries Rising(const std::string& name, double middle, double top) {
  FigureSeries series = {name, Mark::kLine, {}};
  for (const double epsilon : kEpsilons) {
    const double share = 1 / (1 + std::pow(middle / epsilon, 1.6));
    series.points.push_back(Point(epsilon, 0.077 + (top - 0.077) * share, 0.024));
  }
  return series;
}

Figure Recall() {
  Figure figure;
  figure.id = "recall-epsilon";
  figure.title = "Recall@8 against epsilon";
  figure.x = {"epsilon (smaller is more private)", true, NAN, NAN, {}};
  figure.y = {"recall@8", false, 0, 1, {}};
  figure.panels = {
      {"",
       {Level("without privacy: supervised embedding", 0.94),
        Level("without privacy: features", 0.88), Level("random guess", 0.077),
        Rising("PrivateMail, proven", 2.1, 0.91), Rising("PrivateMail, as published", 0.7, 0.92),
        Rising("private PCA, exponential mechanism", 9, 0.8),
        Rising("private PCA, analyse-Gauss", 6, 0.82),
        Rising("private random projections", 14, 0.78), Rising("DP-dSNE", 20, 0.62)}}};
  figure.words = {
      "At epsilon 4, PrivateMail with its proven sensitivity finds a match of the right class "
      "among eight for 69% of the targets; without privacy it is 94%.",
      "The label alone gives 0.95 of this recall here: what the noise leaves of the feature "
      "decides only among the items of a class."};
  return figure;
}

Figure Ablation() {
  Figure figure;
  figure.id = "ablation";
  figure.title = "What the recall owes to the features, to the label and to the noise";
  figure.x = {"",
              false,
              NAN,
              NAN,
              {"as it is", "random feature, right label", "right feature, wrong label",
               "without slots", "label graph of stars", "kernel without its square root"}};
  figure.y = {"recall@8 at epsilon 4", false, 0, NAN, {}};
  FigureSeries bars = {"recall@8", Mark::kBars, {}};
  const std::array<double, 6> recalls = {0.71, 0.674, 0.083, 0.312, 0.702, 0.655};
  for (size_t i = 0; i < recalls.size(); ++i) {
    bars.points.push_back(Point(static_cast<double>(i), recalls.at(i), 0.021));
  }
  figure.panels = {{"", {bars, Level("random guess", 0.077)}}};
  figure.words = {"A random feature with the right label keeps 95% of the recall."};
  return figure;
}

Figure Attacks() {
  Figure figure;
  figure.id = "attacks";
  figure.title = "Attackers' advantage over guessing, and what the guarantee allows";
  figure.x = {"", false, NAN, NAN, {"nearest dummy", "label inference", "feature inversion"}};
  figure.y = {"advantage", false, 0, 1, {}};
  FigureSeries seen = {"measured", Mark::kBars, {}};
  FigureSeries allowed = {"allowed by the guarantee", Mark::kBars, {}};
  for (int i = 0; i < 3; ++i) {
    seen.points.push_back(Point(i, 0.04 + 0.03 * i, 0.02));
    allowed.points.push_back(Point(i, 0.46 - 0.1 * i, 0));
  }
  figure.panels = {{"", {seen, allowed}}};
  figure.words = {"No attacker comes near what epsilon 1 allows: here the strongest reaches 0.1."};
  return figure;
}

FigurePanel Cloud(const std::string& title, double spread, int points_a_class) {
  constexpr int kClasses = 100;
  std::mt19937 generator(7);
  std::normal_distribution<double> normal;
  FigureSeries cloud = {"gallery", Mark::kScatter, {}};
  for (int32_t group = 0; group < kClasses; ++group) {
    const double x = normal(generator);
    const double y = normal(generator);
    for (int i = 0; i < points_a_class; ++i) {
      FigurePoint point;
      point.x = x + spread * normal(generator);
      point.y = y + spread * normal(generator);
      point.group = group;
      cloud.points.push_back(point);
    }
  }
  return {title, {cloud}};
}

Figure Alignment() {
  Figure figure;
  figure.id = "alignment";
  figure.title = "Embeddings before and after alignment";
  figure.x = {"first coordinate", false, NAN, NAN, {}};
  figure.y = {"second coordinate", false, NAN, NAN, {}};
  figure.panels = {Cloud("epsilon 1, before: residual 0.93", 0.9, 6),
                   Cloud("epsilon 1, after: residual 0.41", 0.4, 6),
                   Cloud("epsilon 8, before: residual 0.88", 0.3, 6),
                   Cloud("epsilon 8, after: residual 0.07", 0.05, 6)};
  figure.words = {"Alignment takes the residual from 0.88 to 0.07 at epsilon 8."};
  return figure;
}

Figure Convergence() {
  Figure figure;
  figure.id = "convergence";
  figure.title = "Convergence of the iteration";
  figure.x = {"iterations", false, NAN, NAN, {}};
  figure.y = {"share of the final value", false, NAN, NAN, {}};
  for (const double rate : {0.12, 0.3}) {
    FigurePanel panel = {rate < 0.2 ? "alpha = 0.5" : "alpha = 0.9", {}};
    for (const bool recall : {true, false}) {
      FigureSeries series = {recall ? "recall@8" : "objective", Mark::kLine, {}};
      for (int i = 0; i <= 40; ++i) {
        const double y = 1 - std::exp(-rate * i * (recall ? 1.6 : 1)) * (recall ? 0.8 : 1);
        series.points.push_back(Point(i, y, recall ? 0.03 : 0));
      }
      panel.series.push_back(series);
    }
    figure.panels.push_back(panel);
  }
  figure.words = {"The objective rose in every one of the 40 iterations."};
  return figure;
}

Figure Variance() {
  Figure figure;
  figure.id = "variance";
  figure.title = "Variance of bounded Gaussian noise against epsilon";
  figure.x = {"epsilon", true, NAN, NAN, {}};
  figure.y = {"variance", true, NAN, NAN, {}};
  FigureSeries classical = {"classical Gaussian", Mark::kLine, {}};
  FigureSeries printed = {"bounded, as printed", Mark::kLine, {}};
  FigureSeries exact = {"bounded, exact", Mark::kLine, {}};
  for (const double epsilon : kEpsilons) {
    classical.points.push_back(Point(epsilon, 23.5 / (epsilon * epsilon), 0));
    printed.points.push_back(Point(epsilon, 4.1 / std::pow(epsilon, 1.7), 0));
    exact.points.push_back(Point(epsilon, 2.9 / std::pow(epsilon, 1.8), 0));
  }
  classical.points[0].y = std::numeric_limits<double>::infinity();
  exact.points[4].y = std::numeric_limits<double>::quiet_NaN();
  figure.panels = {{"", {classical, printed, exact}}};
  figure.words = {
      "The exact calibration needs 0.6 of the variance of the printed one at epsilon 1."};
  return figure;
}

}  // namespace

Report SampleReport() {
  Report report;
  report.title = "What epsilon costs on CIFAR-100 features";
  report.about = {{"Data", "CIFAR-100 through MobileNetV2"},
                  {"Rows x dimensions", "10,000 x 128, 100 classes"},
                  {"Anchors, gallery, targets", "2,000, 7,000 and 1,000"},
                  {"Retrieved", "k = 8"},
                  {"Seeds", "1, 2, 3"},
                  {"Bands", "each figure says of what kind"}};
  report.settings = {{"--bandwidth (s)", "6"}, {"--alpha", "0.6"}, {"--steps (T)", "5"}};
  report.figures = {Recall(), Ablation(), Attacks(), Alignment(), Convergence(), Variance()};
  return report;
}

}  // namespace privatemail::client
