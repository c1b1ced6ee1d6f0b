// The arithmetic of encrypted scores against lattice_golden.json (make_lattice_golden.py).
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/digests.h"
#include "common/lattice/evaluator.h"
#include "tests/golden/golden_streams.h"

namespace privatemail::lattice {
namespace {

using nlohmann::json;
constexpr int64_t kLargest = (kModulus - 1) / 2;

Polynomial InputOf(const std::string& name) {
  if (name == "X") {
    Polynomial x(kDegree, 0);
    x[1] = 1;
    return x;
  }
  if (name == "largest") return Polynomial(kDegree, kLargest);
  if (name == "smallest") return Polynomial(kDegree, -kLargest);
  if (name == "alternating" || name == "edges") {
    const Polynomial period =
        name == "edges"
            ? Polynomial{0, 1, -1, kLargest, -kLargest, 1LL << 32, -(1LL << 32), 12345678901}
            : Polynomial{kLargest, -kLargest};
    Polynomial values;
    for (int i = 0; i < kDegree; ++i) values.push_back(period[i % period.size()]);
    return values;
  }
  return Stream(name, kDegree, kLargest);
}

std::string PolynomialBytes(const Polynomial& values) {
  std::string bytes;
  AppendPolynomial(values.data(), &bytes);
  return bytes;
}

void ExpectPolynomial(const Polynomial& values, const json& golden) {
  ExpectValues(values, golden.at("values"));
  EXPECT_EQ(HexSha256(PolynomialBytes(values)), golden.at("sha256"));
}

TEST(LatticeGolden, ModulusAndRootOfUnity) {
  const json& ring = Golden().at("ring");
  EXPECT_EQ(kModulus, ring.at("modulus").get<int64_t>());
  Polynomial x = InputOf("X");
  Transform(x.data());
  EXPECT_EQ(Centre(ring.at("psi").get<int64_t>()), x[0]);  // the value of X at psi
}

TEST(LatticeGolden, TransformsAndInverse) {
  ASSERT_EQ(Golden().at("transform").size(), 5u);
  for (const json& golden : Golden().at("transform")) {
    SCOPED_TRACE(golden.at("input"));
    const Polynomial input = InputOf(golden.at("input"));
    Polynomial values = input;
    Transform(values.data());
    ExpectPolynomial(values, golden);
    InverseTransform(values.data());
    EXPECT_EQ(values, input);
  }
}

Polynomial Product(Polynomial x, Polynomial y) {
  Transform(x.data());
  Transform(y.data());
  MultiplyPointwise(x.data(), y.data(), x.data());
  InverseTransform(x.data());
  return x;
}

TEST(LatticeGolden, ProductOfPolynomials) {
  const json& golden = Golden().at("product");
  ExpectPolynomial(Product(InputOf(golden.at("x")), InputOf(golden.at("y"))), golden);
}

// One of the polynomials skips a word of its stream that is q or more.
TEST(LatticeGolden, SeedExpansion) {
  int skipped = 0;
  for (const json& golden : Golden().at("seeds")) {
    SCOPED_TRACE(golden.dump());
    Polynomial values(kDegree);
    ASSERT_TRUE(ExpandSeed(GoldenBytes(golden.at("seed"), kSeedBytes), golden.at("use"),
                           golden.at("index"), privatemail::Shake128, values.data()));
    ExpectPolynomial(values, golden);
    skipped += golden.at("skipped").get<int>();
  }
  EXPECT_EQ(skipped, 1);
}

TEST(LatticeGolden, BytesOfPolynomials) {
  ASSERT_EQ(Golden().at("forms").at("polynomials").size(), 2u);
  for (const json& golden : Golden().at("forms").at("polynomials")) {
    SCOPED_TRACE(golden.at("input"));
    const Polynomial input = InputOf(golden.at("input"));
    const std::string bytes = PolynomialBytes(input);
    ASSERT_EQ(bytes.size(), kPolynomialBytes);
    EXPECT_EQ(absl::BytesToHexString(bytes.substr(0, 41)), golden.at("head"));
    EXPECT_EQ(HexSha256(bytes), golden.at("sha256"));
    Polynomial read(kDegree);
    ASSERT_TRUE(ReadPolynomial(bytes.data(), read.data()));
    EXPECT_EQ(read, input);
  }
}

TEST(LatticeGolden, ValuesFromModulusOnAreRefused) {
  const std::string largest = PolynomialBytes(Polynomial(kDegree, -1));  // q - 1
  Polynomial read(kDegree);
  ASSERT_TRUE(ReadPolynomial(largest.data(), read.data()));
  for (const int64_t value : {kModulus, kModulus + 1, (int64_t{1} << 41) - 1}) {
    for (const int64_t place : {0, 1, kDegree / 2, kDegree - 1}) {
      std::string bytes = largest;
      for (int64_t bit = 0; bit < 41; ++bit) {
        const int64_t at = 41 * place + bit;
        const int mask = 1 << at % 8;
        bytes[at / 8] =
            static_cast<char>((bytes[at / 8] & ~mask) | ((value >> bit & 1) != 0 ? mask : 0));
      }
      EXPECT_FALSE(ReadPolynomial(bytes.data(), read.data())) << value << " at " << place;
    }
  }
}

TEST(LatticeGolden, BytesOfAnswers) {
  const json& golden = Golden().at("forms").at("answer");
  const Polynomial a = RoundedStream(golden.at("a"), kAnswerBitsA);
  const Polynomial b = RoundedStream(golden.at("b"), kAnswerBitsB);
  std::string bytes(kAnswerBytes, '\0');
  WriteAnswer(a.data(), b.data(), bytes.data());
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(0, 20)), golden.at("head_a"));
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(5120, 16)), golden.at("head_b"));
  EXPECT_EQ(HexSha256(bytes), golden.at("sha256"));
  Polynomial read_a(kDegree), read_b(kDegree);
  ReadAnswer(bytes.data(), read_a.data(), read_b.data());
  EXPECT_EQ(read_a, a);
  EXPECT_EQ(read_b, b);
}

TEST(LatticeGolden, RoundingOfAnswers) {
  ASSERT_GT(Golden().at("rounding").size(), 50u);
  for (const json& golden : Golden().at("rounding")) {
    EXPECT_EQ(RoundToBits(golden.at(0), golden.at(1)), golden.at(2).get<int64_t>()) << golden;
  }
}

TEST(LatticeGolden, ChoiceOfDelta) {
  ASSERT_EQ(Golden().at("deltas").size(), 12u);
  for (const json& golden : Golden().at("deltas")) {
    EXPECT_EQ(ChooseDelta(golden.at(0), golden.at(1)), golden.at(2).get<int>()) << golden;
  }
}

TEST(LatticeGolden, HeadroomCoversAllDimensions) {
  const json& golden = Golden().at("headroom");
  EXPECT_EQ(kHeadroomNumerator, golden.at("numerator"));
  EXPECT_EQ(kHeadroomDenominator, golden.at("denominator"));
  for (const int delta : kDeltas) {
    EXPECT_LE(kMaxDimensions, golden.at("largest_dimensions").at(std::to_string(delta))) << delta;
  }
}

std::vector<Evaluator::Path> PathsOfThisProcessor() {
  std::vector<Evaluator::Path> paths = {Evaluator::Path::kPortable};
  if (Evaluator::Find(Evaluator::Path::kAvx2) != nullptr) paths.push_back(Evaluator::Path::kAvx2);
  return paths;
}

class LatticeGoldenOfPath : public ::testing::TestWithParam<Evaluator::Path> {};

INSTANTIATE_TEST_SUITE_P(Paths, LatticeGoldenOfPath, ::testing::ValuesIn(PathsOfThisProcessor()));

// A key switch of (c, 0) with the keys (1, 0) and (0, 1) and the identity for tau subtracts the low
// digits from a and the high digits from b.
TEST_P(LatticeGoldenOfPath, Digits) {
  const json& golden = Golden().at("digits");
  ASSERT_GT(golden.size(), 50u);
  ASSERT_LE(golden.size(), size_t{kDegree});
  const Kernel& kernel =
      GetParam() == Evaluator::Path::kPortable ? PortableKernel() : *Avx2Kernel();
  const Words words(10);
  const auto load = [&](int array, const Polynomial& values) {
    kernel.load(values.data(), words[array]);
    kernel.transform(words[array]);
  };
  const auto store = [&](int array) {
    Polynomial values(kDegree);
    kernel.inverse_transform(words[array], values.data());
    return values;
  };
  Polynomial zero(kDegree, 0), one = zero, input = zero;
  one[0] = 1;
  for (size_t i = 0; i < golden.size(); ++i) input[i] = golden[i].at(0);
  for (int array = 0; array < 10; ++array) load(array, zero);
  load(0, input);
  load(2, one);
  load(5, one);
  const Ciphertext difference{words[0], words[1]}, sum{words[6], words[7]};
  const Ciphertext keys[] = {{words[2], words[3]}, {words[4], words[5]}};
  Word* const work[] = {words[8], words[9]};
  std::vector<uint16_t> identity(kDegree);
  for (int i = 0; i < kDegree; ++i) identity[i] = static_cast<uint16_t>(i);
  kernel.add_switched(identity.data(), difference, keys, work, sum);
  const Polynomial low = store(6), high = store(7);
  for (size_t i = 0; i < golden.size(); ++i) {
    EXPECT_EQ(-low[i], golden[i].at(1).get<int64_t>()) << golden[i];
    EXPECT_EQ(-high[i], golden[i].at(2).get<int64_t>()) << golden[i];
  }
}

// A session and a query as make_lattice_golden.py draws them.
class GoldenSession {
 public:
  explicit GoldenSession(const json& block)
      : name_(block.at("name")),
        delta_(block.at("delta")),
        dimensions_(block.at("dimensions")),
        secret_(Stream("secret " + name_, kDegree, 1)),
        target_(Stream("target " + name_, dimensions_, block.at("target_bound"))) {}

  std::string Keys() const {
    const std::string seed = GoldenBytes("seed of keys " + name_, kSeedBytes);
    std::string bytes = seed;
    const int levels = CountLevels(delta_);
    for (int i = 0; i < levels * kDigits; ++i) {
      const int64_t power = (int64_t{1} << (kLogDegree + 1 - levels + i / kDigits)) + 1;
      const int64_t weight = int64_t{1} << (kDroppedBits + kDigitBits * (i % kDigits));
      Polynomial message(kDegree);  // weight secret(X^power)
      for (int64_t j = 0; j < kDegree; ++j) {
        const int64_t exponent = j * power % (2 * kDegree);
        message[exponent % kDegree] =
            exponent < kDegree ? weight * secret_[j] : -weight * secret_[j];
      }
      AppendPolynomial(Encrypt(seed, SeedUse::kKeys, i, "key", message).data(), &bytes);
    }
    return bytes;
  }

  std::string QuerySeed() const { return GoldenBytes("seed of query " + name_, kSeedBytes); }
  std::string QueryChunks() const {
    std::string bytes;
    for (int64_t chunk = 0; chunk < CountChunks(dimensions_, delta_); ++chunk) {
      Polynomial message(kDegree, 0);
      for (int64_t i = 0; i < std::min<int64_t>(delta_, dimensions_ - chunk * delta_); ++i) {
        const int64_t value = target_[chunk * delta_ + i];
        message[i == 0 ? 0 : kDegree - i] = i == 0 ? value : -value;
      }
      AppendPolynomial(Encrypt(QuerySeed(), SeedUse::kQuery, chunk, "query", message).data(),
                       &bytes);
    }
    return bytes;
  }

 private:
  // b = a s + e + m.
  Polynomial Encrypt(const std::string& seed, SeedUse use, int64_t index, const std::string& kind,
                     const Polynomial& message) const {
    Polynomial b(kDegree), secret = secret_;
    EXPECT_TRUE(
        ExpandSeed(seed, use, static_cast<uint32_t>(index), privatemail::Shake128, b.data()));
    Transform(secret.data());
    MultiplyPointwise(b.data(), secret.data(), b.data());
    InverseTransform(b.data());
    const Polynomial errors = BinomialErrors(absl::StrCat(kind, " error ", index, " ", name_));
    for (int i = 0; i < kDegree; ++i) b[i] = Centre(b[i] + errors[i] + message[i]);
    return b;
  }

  const std::string name_;
  const int delta_;
  const int64_t dimensions_;
  const Polynomial secret_, target_;
};

// The evaluator expects a row of a block at the number with its 11 bits in reverse order.
int64_t PlaceOf(int64_t row) {
  int64_t place = 0;
  for (int bit = 0; bit < kLogDegree; ++bit) place = 2 * place + (row >> bit) % 2;
  return place;
}

TEST_P(LatticeGoldenOfPath, AnswersOfBlocks) {
  ASSERT_EQ(Golden().at("blocks").size(), 7u);
  const Evaluator& evaluator = *Evaluator::Find(GetParam());
  for (const json& golden : Golden().at("blocks")) {
    const std::string name = golden.at("name");
    SCOPED_TRACE(name);
    const GoldenSession session(golden);
    const std::string keys_bytes = session.Keys(), chunks = session.QueryChunks();
    ASSERT_EQ(HexSha256(keys_bytes), golden.at("keys_sha256"));
    ASSERT_EQ(HexSha256(chunks), golden.at("query_sha256"));
    const int delta = golden.at("delta");
    const int64_t dimensions = golden.at("dimensions");
    const auto keys = evaluator.ParseKeys(keys_bytes, delta, privatemail::Shake128);
    const auto query =
        evaluator.ParseQuery(session.QuerySeed(), chunks, dimensions, delta, privatemail::Shake128);
    ASSERT_NE(keys, nullptr);
    ASSERT_NE(query, nullptr);

    const auto values = Stream("rows " + name, golden.at("rows").get<size_t>() * dimensions,
                               golden.at("row_bound"));
    std::vector<int16_t> rows(kDegree * dimensions, 0);
    for (int64_t row = 0; row < golden.at("rows"); ++row) {
      std::copy_n(values.begin() + row * dimensions, dimensions,
                  rows.begin() + PlaceOf(row) * dimensions);
    }
    std::string answer(kAnswerBytes, '\0');
    evaluator.Score({rows.data()}, dimensions, {{keys.get(), query.get(), answer.data()}},
                    [](int count, const std::function<void(int)>& task) {
                      for (int i = 0; i < count; ++i) task(i);
                    });
    Polynomial a(kDegree), b(kDegree);
    ReadAnswer(answer.data(), a.data(), b.data());
    ExpectValues(a, golden.at("answer_a"));
    ExpectValues(b, golden.at("answer_b"));
    EXPECT_EQ(HexSha256(answer), golden.at("answer_sha256"));
  }
}

}  // namespace
}  // namespace privatemail::lattice
