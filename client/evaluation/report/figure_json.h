// Figures and reports as JSON: results.json and the cache of an interrupted evaluation.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_JSON_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_JSON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/figure.h"
#include "client/evaluation/report/report.h"

namespace privatemail::client {

// The format that is written, and the only one that is read.
inline constexpr int kResultsFormat = 3;

// A list of figures:
//   {"id": "recall", "title": "...", "x": AXIS, "y": AXIS,
//    "panels": [{"title": "...", "series": [{"name": "...", "mark": "line", "points": [POINT]}]}],
//    "words": ["..."], "class_names": [[3, "heron"]]}
//   AXIS: {"label": "epsilon", "logarithmic": true, "low": 1, "high": 10, "categories": ["..."]}
//   POINT: {"x": 1, "y": 0.5, "low": 0.4, "high": 0.6, "group": 3}
// mark: line, reference, bars or scatter. NaN is absent; "Infinity" and "-Infinity" are texts;
// other numbers have as many digits as bring them back bit by bit. A group of 0 and empty lists of
// categories and of class names are absent, too. Text that is not UTF-8 gets U+FFFD where it is
// not.
std::string WriteFigures(const std::vector<Figure>& figures);

// INVALID_ARGUMENT naming the field ("figures[2].x.label must be a text, but is 3") for anything
// else: another type, a member that is missing or unknown, an id that is no part of a file name. A
// text of any size and depth is read or refused without recursion.
absl::StatusOr<std::vector<Figure>> ReadFigures(const std::string& json);

// {"format": 2, "title": "...", "about": [["gallery", "5,000 x 128"]],
//  "settings": [["alpha", "0.6"]], "figures": [...]}
std::string WriteResults(const Report& report);
absl::StatusOr<Report> ReadResults(const std::string& json);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_JSON_H_
