#include "common/lattice/wire.h"

#include <vector>

namespace privatemail::lattice {
namespace {

constexpr size_t kBytesPerDraw = 6;
constexpr std::string_view kDomain = "privatemail encrypted 1";

// Appends values of a fixed number of bits, the lowest bit first.
class BitWriter {
 public:
  explicit BitWriter(char* bytes) : bytes_(bytes) {}

  void Write(uint64_t value, int bits) {
    pending_ |= static_cast<unsigned __int128>(value) << count_;
    for (count_ += bits; count_ >= 8; count_ -= 8, pending_ >>= 8) {
      *bytes_++ = static_cast<char>(pending_ & 0xff);
    }
  }

 private:
  char* bytes_;
  unsigned __int128 pending_ = 0;
  int count_ = 0;
};

class BitReader {
 public:
  explicit BitReader(const char* bytes) : bytes_(bytes) {}

  uint64_t Read(int bits) {
    for (; count_ < bits; count_ += 8) {
      pending_ |= static_cast<unsigned __int128>(static_cast<uint8_t>(*bytes_++)) << count_;
    }
    const auto value = static_cast<uint64_t>(pending_) & ((uint64_t{1} << bits) - 1);
    pending_ >>= bits;
    count_ -= bits;
    return value;
  }

 private:
  const char* bytes_;
  unsigned __int128 pending_ = 0;
  int count_ = 0;
};

}  // namespace

bool ExpandSeed(std::string_view seed, SeedUse use, uint32_t index, const Shake128& shake,
                int64_t* values) {
  std::string input(kDomain);
  input += static_cast<char>(use);
  input += seed;
  for (int byte = 0; byte < 4; ++byte) input += static_cast<char>(index >> (8 * byte) & 0xff);
  // One draw of 2^29 is skipped; a few more than needed nearly always suffice.
  for (size_t draws = kDegree + 4;; draws *= 2) {
    std::vector<uint8_t> bytes(draws * kBytesPerDraw);
    if (!shake(input, bytes.data(), bytes.size())) return false;
    int taken = 0;
    for (size_t draw = 0; draw < draws && taken < kDegree; ++draw) {
      uint64_t value = 0;
      for (size_t byte = kBytesPerDraw; byte-- > 0;) {
        value = value << 8 | bytes[draw * kBytesPerDraw + byte];
      }
      value &= (uint64_t{1} << kModulusBits) - 1;
      if (value < static_cast<uint64_t>(kModulus))
        values[taken++] = Centre(static_cast<int64_t>(value));
    }
    if (taken == kDegree) return true;
  }
}

void AppendPolynomial(const int64_t* values, std::string* bytes) {
  const size_t first = bytes->size();
  bytes->resize(first + kPolynomialBytes);
  BitWriter writer(bytes->data() + first);
  for (int i = 0; i < kDegree; ++i) {
    writer.Write(static_cast<uint64_t>(values[i] + (kModulus & (values[i] >> 63))), kModulusBits);
  }
}

bool ReadPolynomial(const char* bytes, int64_t* values) {
  BitReader reader(bytes);
  bool valid = true;
  for (int i = 0; i < kDegree; ++i) {
    const auto value = static_cast<int64_t>(reader.Read(kModulusBits));
    valid = valid && value < kModulus;
    values[i] = Centre(value);
  }
  return valid;
}

void WriteAnswer(const int64_t* a, const int64_t* b, char* bytes) {
  BitWriter writer(bytes);
  for (int i = 0; i < kDegree; ++i) writer.Write(static_cast<uint64_t>(a[i]), kAnswerBitsA);
  for (int i = 0; i < kDegree; ++i) writer.Write(static_cast<uint64_t>(b[i]), kAnswerBitsB);
}

void ReadAnswer(const char* bytes, int64_t* a, int64_t* b) {
  BitReader reader(bytes);
  for (int i = 0; i < kDegree; ++i) a[i] = static_cast<int64_t>(reader.Read(kAnswerBitsA));
  for (int i = 0; i < kDegree; ++i) b[i] = static_cast<int64_t>(reader.Read(kAnswerBitsB));
}

}  // namespace privatemail::lattice
