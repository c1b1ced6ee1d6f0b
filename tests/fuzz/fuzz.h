// Helpers of several fuzzers.
#ifndef PRIVATEMAIL_TESTS_FUZZ_FUZZ_H_
#define PRIVATEMAIL_TESTS_FUZZ_FUZZ_H_

#include <google/protobuf/stubs/logging.h>

#include <cstdlib>

namespace privatemail {

inline void Require(bool holds) {
  if (!holds) std::abort();
}

// Protobuf logs every text that is not UTF-8.
inline const auto kFormerLogHandler = google::protobuf::SetLogHandler(nullptr);

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_FUZZ_FUZZ_H_
