// Fuzzes the byte forms of ciphertexts. The first byte chooses the form, the second a size; the
// rest is repeated to that size, unless the first byte says that it stays as it is. Both evaluators
// accept the bytes whose values are below q, and no others.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digests.h"
#include "common/lattice/evaluator.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail::lattice {
namespace {

std::string Repeat(std::string_view text, size_t size) {
  std::string repeated;
  while (!text.empty() && repeated.size() < size) repeated.append(text);
  repeated.resize(size);
  return repeated;
}

// Accepts exactly values below q, which it writes as it read them.
bool CheckPolynomial(const char* bytes) {
  std::vector<int64_t> values(kDegree);
  if (!ReadPolynomial(bytes, values.data())) return false;
  for (const int64_t value : values) Require(value == Centre(value));
  std::string again;
  AppendPolynomial(values.data(), &again);
  Require(again == std::string_view(bytes, kPolynomialBytes));
  return true;
}

bool CheckPolynomials(std::string_view bytes) {
  bool valid = true;
  for (size_t first = 0; first < bytes.size(); first += kPolynomialBytes) {
    valid = CheckPolynomial(bytes.data() + first) && valid;
  }
  return valid;
}

void CheckAnswer(const std::string& bytes) {
  std::vector<int64_t> a(kDegree), b(kDegree);
  ReadAnswer(bytes.data(), a.data(), b.data());
  for (int i = 0; i < kDegree; ++i) {
    Require(a[i] >= 0 && a[i] < 1 << kAnswerBitsA && b[i] >= 0 && b[i] < 1 << kAnswerBitsB);
  }
  std::string again(kAnswerBytes, '\0');
  WriteAnswer(a.data(), b.data(), again.data());
  Require(again == bytes);
}

// The same bytes serve as keys and as query.
void CheckParsers(std::string_view text, bool repeat, int delta, int64_t dimensions) {
  const std::string seed = Repeat(text, kSeedBytes);
  const size_t keys_size = KeysBytes(delta), chunks_size = QueryChunkBytes(dimensions, delta);
  const std::string keys = repeat ? Repeat(text, keys_size) : std::string(text);
  const std::string chunks = repeat ? Repeat(text, chunks_size) : std::string(text);
  const bool keys_valid =
      keys.size() == keys_size && CheckPolynomials(std::string_view(keys).substr(kSeedBytes));
  const bool query_valid = chunks.size() == chunks_size && CheckPolynomials(chunks);
  for (const auto path : {Evaluator::Path::kPortable, Evaluator::Path::kAvx2}) {
    const Evaluator* evaluator = Evaluator::Find(path);
    if (evaluator == nullptr) continue;
    Require((evaluator->ParseKeys(keys, delta, privatemail::Shake128) != nullptr) == keys_valid);
    Require((evaluator->ParseQuery(seed, chunks, dimensions, delta, privatemail::Shake128) !=
             nullptr) == query_valid);
  }
}

}  // namespace
}  // namespace privatemail::lattice

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace privatemail::lattice;
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  switch (data[0] % 4) {
    case 0:
      (void)CheckPolynomial(Repeat(text, kPolynomialBytes).data());
      break;
    case 1:
      CheckAnswer(Repeat(text, kAnswerBytes));
      break;
    default:
      CheckParsers(text, data[0] % 4 == 2, kDeltas[data[0] / 4 % kDeltas.size()], 1 + data[1]);
  }
  return 0;
}
