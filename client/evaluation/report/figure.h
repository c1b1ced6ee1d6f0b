// Results of an experiment as they are stored, drawn and listed, and the check before drawing.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace privatemail::client {

struct FigurePoint {
  double x = 0;  // or the index of a category
  double y = 0;
  // A band around y, as a confidence interval; NaN: none.
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
  int32_t group = 0;  // kScatter: the class that it is coloured by
};

struct FigureSeries {
  enum class Mark {
    kLine,       // through the points, in the order of x
    kReference,  // a dashed line: a ceiling, a baseline without privacy, chance
    kBars,       // one for each category
    kScatter,    // dots, coloured by group
  };
  std::string name;
  Mark mark = Mark::kLine;
  std::vector<FigurePoint> points = {};
  // Of a kReference, what is drawn instead of its points where straight lines between these would
  // mislead; empty: the points.
  std::vector<FigurePoint> curve = {};
};

struct FigureAxis {
  std::string label;
  bool logarithmic = false;
  double low = std::numeric_limits<double>::quiet_NaN();  // NaN: what the points need
  double high = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::string> categories = {};  // not empty: x counts these
};

// One of the plots side by side in a figure; all have its axes.
struct FigurePanel {
  std::string title;  // empty where there is one panel
  std::vector<FigureSeries> series = {};
};

struct Figure {
  std::string id;  // letters, digits and '-': part of file names
  std::string title;
  FigureAxis x = {};
  FigureAxis y = {};
  std::vector<FigurePanel> panels = {};
  std::vector<std::string> words = {};  // sentences on what the figure shows, made from its data
  std::map<int32_t, std::string> class_names = {};  // of groups, as far as they are known
};

// Beyond this the ends of an axis might not be numbers.
inline constexpr double kLargestDrawn = 1e250;
// The same for an axis whose unit is a factor.
inline constexpr double kSmallestLogarithmic = 1e-250;

// INVALID_ARGUMENT: an id that is no part of a file name. `field` names it.
absl::Status CheckFigureId(absl::string_view field, const std::string& id);

// INVALID_ARGUMENT naming the figure and the place: an id as above; an axis whose low is not below
// its high; a finite value out of the ranges above; y with categories; bars without categories; an
// x that is none of the categories. NaN, infinities and bands down to 0 on a logarithmic axis are
// allowed.
absl::Status CheckFigure(const Figure& figure);

// Takes out what CheckFigure refuses and returns why, one message each.
std::vector<std::string> TakeOutUndrawable(std::vector<Figure>* figures);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_H_
