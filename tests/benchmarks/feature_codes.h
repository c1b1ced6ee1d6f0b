// Names of the item codes that encode features.
#ifndef PRIVATEMAIL_TESTS_BENCHMARKS_FEATURE_CODES_H_
#define PRIVATEMAIL_TESTS_BENCHMARKS_FEATURE_CODES_H_

#include <utility>

#include "common/cells/cell_code.h"

namespace privatemail {

inline constexpr std::pair<const char*, CellCode> kFeatureCodes[] = {
    {"float16", CellCode::kFloat16}, {"scalar8", CellCode::kScalar8}, {"pq64", CellCode::kPq64},
    {"pq32", CellCode::kPq32},       {"pq16", CellCode::kPq16},       {"pq8", CellCode::kPq8}};

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_BENCHMARKS_FEATURE_CODES_H_
