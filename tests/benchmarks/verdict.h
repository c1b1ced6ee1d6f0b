// The word that benchmarks print for a met or missed target.
#ifndef PRIVATEMAIL_TESTS_BENCHMARKS_VERDICT_H_
#define PRIVATEMAIL_TESTS_BENCHMARKS_VERDICT_H_

namespace privatemail {

inline const char* Verdict(bool met) { return met ? "met" : "MISSED"; }

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_BENCHMARKS_VERDICT_H_
