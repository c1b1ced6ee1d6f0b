// The report as files.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_WRITE_REPORT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_WRITE_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "client/evaluation/report/report.h"

namespace privatemail::client {

// Makes `directory` where there is none, and writes index.html, results.json and one <id>.svg a
// figure into it; each replaces its predecessor in one step, index.html last. Other files stay.
// INVALID_ARGUMENT, before anything is written: see CheckFigure; two figures with the same id.
// FAILED_PRECONDITION or RESOURCE_EXHAUSTED naming the path: it cannot be written.
absl::Status WriteReport(const std::string& directory, const Report& report);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_WRITE_REPORT_H_
