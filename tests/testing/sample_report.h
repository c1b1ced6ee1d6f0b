// A sample report of synthetic numbers with every kind of figure.
#ifndef PRIVATEMAIL_TESTS_TESTING_SAMPLE_REPORT_H_
#define PRIVATEMAIL_TESTS_TESTING_SAMPLE_REPORT_H_

#include "client/evaluation/report/report.h"

namespace privatemail::client {

// Deterministic. Figures: nine series with bands on a logarithmic axis; bars over categories with
// one and with two series; scatters in four panels with 100 groups; lines in two panels; a doubly
// logarithmic plot with values that are not finite.
Report SampleReport();

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_TESTING_SAMPLE_REPORT_H_
