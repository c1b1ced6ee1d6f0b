// Words of the JSON of figures.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_MARKS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_MARKS_H_

#include <array>

#include "client/evaluation/figure.h"

namespace privatemail::client {

// JSON has no numbers for these.
inline constexpr const char* kInfinity = "Infinity";
inline constexpr const char* kMinusInfinity = "-Infinity";

// In the order of FigureSeries::Mark.
inline constexpr std::array<const char*, 4> kMarkNames = {"line", "reference", "bars", "scatter"};

inline const char* MarkName(FigureSeries::Mark mark) {
  return kMarkNames.at(static_cast<size_t>(mark));
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_REPORT_FIGURE_MARKS_H_
