// Figures as tables, for whoever cannot or does not want to read plots.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_HTML_TABLE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_HTML_TABLE_H_

#include <cstddef>
#include <string>

#include "client/evaluation/figure.h"

namespace privatemail::client {

// A row a point, of all panels and series, in a box of its own that scrolls. Numbers have six
// digits; NaN is a dash. Columns that say nothing (one panel, no band, no groups) are left out.
std::string HtmlTable(const Figure& figure);

size_t PointCount(const Figure& figure);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_HTML_TABLE_H_
