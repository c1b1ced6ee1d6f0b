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

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_REPORT_H_
