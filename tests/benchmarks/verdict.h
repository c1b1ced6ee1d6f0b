// Whether a figure meets its target, as every benchmark says it.
#ifndef PRIVATEMAIL_TESTS_BENCHMARKS_VERDICT_H_
#define PRIVATEMAIL_TESTS_BENCHMARKS_VERDICT_H_

namespace privatemail {

inline const char* Verdict(bool met) { return met ? "met" : "MISSED"; }

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_BENCHMARKS_VERDICT_H_
