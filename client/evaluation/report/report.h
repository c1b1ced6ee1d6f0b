// The report of an evaluation, written as HTML, SVG and JSON files.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_REPORT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/evaluation/figure.h"

namespace privatemail::client {

struct Report {
  std::string title;
  // What was measured, in the order in which it is told: {"gallery", "5,000 x 128, 100 classes"}.
  // Nothing about the machine, so that the same seeds give the same files.
  std::vector<std::pair<std::string, std::string>> about;
  // What it takes to get these figures again: {"alpha", "0.6"}.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<Figure> figures;
};

// Makes `directory` where there is none, and writes index.html, results.json and one <id>.svg a
// figure into it; each replaces its predecessor in one step, index.html last. Other files stay.
// INVALID_ARGUMENT, before anything is written: see CheckFigure; two figures with the same id.
// FAILED_PRECONDITION or RESOURCE_EXHAUSTED naming the path: it cannot be written.
absl::Status WriteReport(const std::string& directory, const Report& report);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_REPORT_H_
