// The report of an evaluation, written as HTML, SVG and JSON files.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_REPORT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/evaluation/report/figure.h"

namespace privatemail::client {

struct Report {
  std::string title;
  // The measured data: {"gallery", "5,000 x 128, 100 classes"}. Nothing about the machine, so that
  // the same seeds give the same files.
  std::vector<std::pair<std::string, std::string>> about;
  // Settings to reproduce the figures: {"alpha", "0.6"}.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<Figure> figures;
};

// Writes index.html, results.json and one <id>.svg a figure into `directory`, each atomically,
// index.html last. INVALID_ARGUMENT before anything is written: CheckFigure's; two figures of one
// id. FAILED_PRECONDITION or RESOURCE_EXHAUSTED naming the path: it cannot be written.
absl::Status WriteReport(const std::string& directory, const Report& report);

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

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_REPORT_H_
