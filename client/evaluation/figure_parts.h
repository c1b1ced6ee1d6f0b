// What several experiments make their figures of.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_FIGURE_PARTS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_FIGURE_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "client/evaluation/figure.h"
#include "client/evaluation/job.h"
#include "client/evaluation/metrics.h"

namespace privatemail::client {

// One of the scores of an answer, as lists of a JobResult and panels are named.
struct Metric {
  const char* key;    // in a JobResult
  std::string title;  // "Recall@8: at least one of the 8 is of the class (the papers')"
  std::string name;   // "recall@8", in words
};
std::vector<Metric> MetricsAt(int64_t k);  // recall, precision, fidelity

// A share: from 0 to 1.
FigureAxis ShareAxis(std::string label);
FigureAxis EpsilonAxis();

// A known function of epsilon as a reference: points at these epsilons, a curve between the first
// and the last.
FigureSeries CurveOver(std::string name, const std::vector<double>& epsilons,
                       absl::FunctionRef<double(double epsilon)> height);

// One point with its band.
FigurePoint PointOf(double x, const Band& band);
Band BandAt(const FigurePoint& point);

// Where settings differ.
inline constexpr char kStartsDiffer[] =
    "Every setting has a start of its own on the server, as every collection has: what two of them "
    "differ by is partly their starts.";

// What BandOfScores says of this many splits: "Bands: ..."
std::string ScoreBandsInWords(int64_t splits);

// Three significant digits, without an exponent where that is short; "not known" for NaN.
std::string Short(double value);
// "1 run", "3 runs"
std::string Counted(int64_t count, absl::string_view noun);
// "0.95 (0.93 to 0.97)"
std::string WithBand(const Band& band);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_FIGURE_PARTS_H_
