// Arithmetic modulo q against division; the evaluator's paths against each other. Transforms, byte
// forms and answers against an independent program: tests/golden/lattice_golden_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "common/lattice/evaluator.h"
#include "common/lattice/modular.h"
#include "tests/testing/random_polynomials.h"

namespace privatemail::lattice {
namespace {

using testing::FillAtRandom;  // any bytes will do for what both paths expand alike
using Polynomial = std::vector<int64_t>;

constexpr int64_t kLargest = (kModulus - 1) / 2;

Polynomial UniformPolynomial(std::mt19937_64& random) {
  std::uniform_int_distribution<int64_t> value(-kLargest, kLargest);
  Polynomial polynomial(kDegree);
  for (int64_t& coefficient : polynomial) coefficient = value(random);
  return polynomial;
}

// Modulo q by division, without the tricks of modular.h.
int64_t CentredRemainder(Wide value) {
  auto remainder = static_cast<int64_t>(value % kModulus);
  if (remainder > kLargest) remainder -= kModulus;
  if (remainder < -kLargest) remainder += kModulus;
  return remainder;
}

TEST(Lattice, MultiplicationsReduceExtremeValues) {
  const std::vector<int64_t> factors = {0, 1, -1, kLargest, -kLargest, kLargest - 1, 1 << 20};
  std::vector<int64_t> values = factors;
  for (const int bits : {44, 47}) {
    values.push_back((int64_t{1} << bits) - 1);
    values.push_back(-(int64_t{1} << bits));
  }
  for (const int64_t x : values) {
    for (const int64_t y : factors) {
      const int64_t expected = CentredRemainder(Wide{x} * y);
      EXPECT_EQ(Centre(Multiply(x, y)), expected) << x << " * " << y;
      const int64_t product = MultiplyBy(x, {y, ShareOf(y)}, kModulus);
      EXPECT_EQ(Centre(product), expected) << x << " * " << y;
      EXPECT_GE(product, -(1 << 24));
      EXPECT_LE(product, kModulus + (1 << 24));
    }
    EXPECT_EQ(Centre(x), CentredRemainder(x));
  }
}

enum class Values { kRandom, kLargest, kSmallest };

std::string Polynomials(size_t count, Values values, std::mt19937_64& random) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    Polynomial polynomial = UniformPolynomial(random);
    if (values != Values::kRandom) {
      std::fill(polynomial.begin(), polynomial.end(),
                values == Values::kLargest ? kLargest : -kLargest);
    }
    AppendPolynomial(polynomial.data(), &bytes);
  }
  return bytes;
}

struct Case {
  int delta;
  int64_t dimensions;
  size_t blocks;
  size_t targets;
  Values values;
};

void RunSerially(int count, const std::function<void(int)>& task) {
  for (int i = count - 1; i >= 0; --i) task(i);
}

std::string Answers(const Evaluator& evaluator, const Case& c) {
  std::mt19937_64 random(5);
  const auto row_bound = static_cast<int>(16384 / std::sqrt(static_cast<double>(c.dimensions))) + 1;
  std::uniform_int_distribution<int> coordinate(-row_bound, row_bound);
  std::vector<std::vector<int16_t>> blocks(c.blocks);
  std::vector<const int16_t*> rows;
  for (auto& block : blocks) {
    block.resize(static_cast<size_t>(kDegree * c.dimensions));
    for (int16_t& value : block) {
      value = static_cast<int16_t>(c.values == Values::kRandom ? coordinate(random) : row_bound);
    }
    rows.push_back(block.data());
  }
  std::vector<std::shared_ptr<const EvaluationKeys>> keys;
  std::vector<std::shared_ptr<const Query>> queries;
  std::vector<std::string> answers;
  std::vector<Target> targets;
  for (size_t t = 0; t < c.targets; ++t) {
    const std::string seed(kSeedBytes, static_cast<char>('a' + t));
    const size_t polynomials = static_cast<size_t>(CountLevels(c.delta)) * kDigits;
    keys.push_back(evaluator.ParseKeys(seed + Polynomials(polynomials, c.values, random), c.delta,
                                       FillAtRandom));
    const size_t chunks = static_cast<size_t>(CountChunks(c.dimensions, c.delta));
    queries.push_back(evaluator.ParseQuery(seed, Polynomials(chunks, c.values, random),
                                           c.dimensions, c.delta, FillAtRandom));
    answers.emplace_back(c.blocks * kAnswerBytes, '\0');
  }
  for (size_t t = 0; t < c.targets; ++t) {
    targets.push_back({keys[t].get(), queries[t].get(), answers[t].data()});
  }
  evaluator.Score(rows, c.dimensions, targets, RunSerially);
  std::string all;
  for (const std::string& answer : answers) all += answer;
  return all;
}

TEST(Evaluator, PathsGiveTheSameBits) {
  const Evaluator* avx2 = Evaluator::Find(Evaluator::Path::kAvx2);
  if (avx2 == nullptr) return;  // the golden test covers the only path that there is
  for (const Case& c :
       {Case{32, 128, 1, 1, Values::kRandom}, Case{64, 128, 2, 3, Values::kRandom},
        Case{128, 130, 1, 2, Values::kRandom}, Case{256, 3, 1, 1, Values::kRandom},
        Case{32, 1, 17, 2, Values::kRandom}, Case{32, 500, 1, 1, Values::kRandom},
        Case{256, 1280, 1, 1, Values::kRandom}, Case{32, 128, 1, 1, Values::kLargest},
        Case{32, 4096, 1, 1, Values::kLargest}, Case{64, 128, 1, 2, Values::kSmallest},
        Case{256, 600, 1, 1, Values::kSmallest}}) {
    EXPECT_TRUE(Answers(*avx2, c) == Answers(*Evaluator::Find(Evaluator::Path::kPortable), c))
        << c.delta << " " << c.dimensions << " " << static_cast<int>(c.values);
  }
}

TEST(Evaluator, TargetsOfOneCallGetWhatTheyGetAlone) {
  const Evaluator& evaluator = Evaluator::Best();
  Case c{64, 100, 3, 4, Values::kRandom};
  const std::string together = Answers(evaluator, c);
  c.targets = 1;
  EXPECT_TRUE(together.substr(0, 3 * kAnswerBytes) == Answers(evaluator, c));
}

TEST(Evaluator, WrongSizesAndValuesFromQAreRefused) {
  std::mt19937_64 random(6);
  for (const auto path : {Evaluator::Path::kPortable, Evaluator::Path::kAvx2}) {
    const Evaluator* evaluator = Evaluator::Find(path);
    if (evaluator == nullptr) continue;
    const std::string seed(kSeedBytes, 's');
    const std::string chunks = Polynomials(2, Values::kRandom, random);
    EXPECT_NE(evaluator->ParseQuery(seed, chunks, 128, 64, FillAtRandom), nullptr);
    EXPECT_EQ(evaluator->ParseQuery(seed, chunks, 129, 64, FillAtRandom), nullptr);
    EXPECT_EQ(evaluator->ParseQuery(seed + "s", chunks, 128, 64, FillAtRandom), nullptr);
    EXPECT_EQ(
        evaluator->ParseQuery(seed, std::string(chunks.size(), '\xff'), 128, 64, FillAtRandom),
        nullptr);
    const auto broken = [](std::string_view, uint8_t*, size_t) { return false; };
    EXPECT_EQ(evaluator->ParseQuery(seed, chunks, 128, 64, broken), nullptr);
    const std::string keys = seed + Polynomials(12, Values::kRandom, random);
    EXPECT_NE(evaluator->ParseKeys(keys, 64, FillAtRandom), nullptr);
    EXPECT_EQ(evaluator->ParseKeys(keys, 32, FillAtRandom), nullptr);
    EXPECT_EQ(evaluator->ParseKeys(std::string(keys.size(), '\xff'), 64, FillAtRandom), nullptr);
  }
}

}  // namespace
}  // namespace privatemail::lattice
