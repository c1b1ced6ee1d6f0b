// The report as a page.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_HTML_REPORT_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_HTML_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/evaluation/report/report.h"

namespace privatemail::client {

// index.html: one document of HTML 5 that loads nothing, which its content security policy makes
// sure of, and runs no script. Every figure with its sentences, a plot for wide and one for narrow
// screens, and a table of its points. Links to results.json and <figure's id>.svg beside it. What
// is refused: see CheckFigure.
absl::StatusOr<std::string> HtmlReport(const Report& report);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_HTML_REPORT_H_
