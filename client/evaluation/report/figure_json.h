// A report as JSON: results.json.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_JSON_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_JSON_H_

#include <string>

#include "client/evaluation/report/report.h"

namespace privatemail::client {

inline constexpr int kResultsFormat = 3;

// {"format": 3, "title": "...", "about": [["gallery", "5,000 x 128"]],
//  "settings": [["alpha", "0.6"]], "figures": [FIGURE]}
//   FIGURE: {"id": "recall", "title": "...", "x": AXIS, "y": AXIS,
//     "panels": [{"title": "...", "series": [{"name": "...", "mark": "line", "points": [POINT]}]}],
//     "words": ["..."], "class_names": [[3, "heron"]]}
//   AXIS: {"label": "epsilon", "logarithmic": true, "low": 1, "high": 10, "categories": ["..."]}
//   POINT: {"x": 1, "y": 0.5, "low": 0.4, "high": 0.6, "group": 3}
// - mark: line, reference, bars or scatter; a reference may have a "curve" of POINTs.
// - Absent: NaN, a group of 0, and empty lists of categories and class names.
// - "Infinity" and "-Infinity" are texts; other numbers have enough digits to restore every bit.
// - Bytes that are not UTF-8 become U+FFFD.
std::string WriteResults(const Report& report);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_JSON_H_
