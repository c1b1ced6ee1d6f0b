// Access to the reference values of golden.json (README.md).
#ifndef PRIVATEMAIL_TESTS_GOLDEN_GOLDEN_H_
#define PRIVATEMAIL_TESTS_GOLDEN_GOLDEN_H_

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "common/base/matrix.h"

namespace privatemail {

inline const nlohmann::json& Golden() {
  static const nlohmann::json values =
      nlohmann::json::parse(std::ifstream(PRIVATEMAIL_GOLDEN_JSON));
  return values;
}

inline Matrix MatrixFrom(const nlohmann::json& rows) {
  Matrix matrix(rows.size(), rows.at(0).size());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < rows[i].size(); ++j) matrix(i, j) = rows[i][j].get<double>();
  }
  return matrix;
}

// |actual - expected| <= 1e-9 |expected| in Frobenius norm.
inline void ExpectSame(const Matrix& actual, const Matrix& expected) {
  ASSERT_EQ(actual.rows(), expected.rows());
  ASSERT_EQ(actual.cols(), expected.cols());
  EXPECT_LE((actual - expected).norm(), 1e-9 * expected.norm()) << actual << "\nexpected\n"
                                                                << expected;
}

inline void ExpectSame(double actual, double expected) {
  EXPECT_LE(std::abs(actual - expected), 1e-9 * std::abs(expected))
      << actual << " expected " << expected;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_GOLDEN_GOLDEN_H_
