// A sample report of synthetic numbers with every kind of figure.
#ifndef PRIVATEMAIL_TESTS_TESTING_SAMPLE_REPORT_H_
#define PRIVATEMAIL_TESTS_TESTING_SAMPLE_REPORT_H_

#include "client/evaluation/report/report.h"

namespace privatemail::client {

// Deterministic. Figures: lines with bands and a reference on a logarithmic axis; two series of
// bars over categories; scatters in two panels with groups; a doubly logarithmic plot with values
// that are not finite.
Report SampleReport();

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_TESTING_SAMPLE_REPORT_H_
