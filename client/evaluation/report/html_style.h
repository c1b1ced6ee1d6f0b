// How the report looks.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_HTML_STYLE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_HTML_STYLE_H_

#include "absl/strings/string_view.h"

namespace privatemail::client {

// CSS of the page around the plots, whose own is PlotStyleSheet(): light and dark, wide and narrow,
// on paper. Below 840 px it shows what has the class "phone" instead of what has "page".
absl::string_view HtmlStyleSheet();

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_HTML_STYLE_H_
