// Helpers of several benchmarks: clocks, memory, random rows and the word for a target.
#ifndef PRIVATEMAIL_TESTS_BENCHMARKS_MEASURE_H_
#define PRIVATEMAIL_TESTS_BENCHMARKS_MEASURE_H_

#include <sys/resource.h>
#include <time.h>

#include <chrono>
#include <random>

#include "common/base/matrix.h"

namespace privatemail {

inline const char* Verdict(bool met) { return met ? "met" : "MISSED"; }

// Counts the process, or with CLOCK_THREAD_CPUTIME_ID the calling thread.
inline double ProcessorSeconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns the largest number of bytes that were resident at once.
inline double PeakMemory() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

inline FloatMatrix NormalRows(Eigen::Index rows, Eigen::Index columns) {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  return FloatMatrix::NullaryExpr(rows, columns, [&] { return normal(bits); });
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_BENCHMARKS_MEASURE_H_
