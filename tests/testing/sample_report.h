// A report of made-up numbers with every kind of figure.
#ifndef PRIVATEMAIL_TESTS_TESTING_SAMPLE_REPORT_H_
#define PRIVATEMAIL_TESTS_TESTING_SAMPLE_REPORT_H_

#include "client/evaluation/report/report.h"

namespace privatemail::client {

// The same every time: a logarithmic axis with nine series and bands, bars over categories with one
// and with two series, scatters in four panels with 100 groups, lines in two panels, and a plot
// that is logarithmic both ways with values that are not finite.
Report SampleReport();

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_TESTING_SAMPLE_REPORT_H_
