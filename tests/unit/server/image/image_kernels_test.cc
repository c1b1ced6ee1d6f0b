#include "server/image/image_kernels.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace privatemail::server {
namespace {

constexpr uint32_t kExtremeWords[] = {0,          1,          0x7fff,     0x8000,     0xffff,
                                      0x10000,    0x7fff8000, 0x7fffffff, 0x80000000, 0x80008000,
                                      0xffff7fff, 0xffff8000, 0xffffffff};
constexpr int16_t kExtremeRows[] = {0, 1, -1, 32767, -32768, 16384, -16384};

uint32_t SomeWord(std::mt19937_64* bits) {
  const bool extreme = (*bits)() % 2 == 0;
  return extreme ? kExtremeWords[(*bits)() % std::size(kExtremeWords)]
                 : static_cast<uint32_t>((*bits)());
}

int16_t SomeRowValue(std::mt19937_64* bits) {
  const bool extreme = (*bits)() % 2 == 0;
  return extreme ? kExtremeRows[(*bits)() % std::size(kExtremeRows)]
                 : static_cast<int16_t>((*bits)());
}

// In 64 bits, where nothing overflows, and then modulo 2^32.
uint32_t PlainProduct(const int16_t* row, const std::vector<uint32_t>& words) {
  int64_t sum = 0;
  for (size_t i = 0; i < words.size(); ++i) sum += int64_t{row[i]} * int64_t{words[i]};
  return static_cast<uint32_t>(sum);
}

void CheckProducts(size_t dim, size_t count, size_t shares, std::mt19937_64* bits) {
  std::vector<int16_t> rows(count * dim);
  for (int16_t& value : rows) value = SomeRowValue(bits);
  std::vector<std::vector<uint32_t>> words(shares, std::vector<uint32_t>(dim));
  std::vector<SplitShare> split;
  for (auto& of_share : words) {
    for (uint32_t& word : of_share) word = SomeWord(bits);
    split.emplace_back(of_share);
  }
  std::vector<const SplitShare*> pointers;
  std::vector<std::vector<uint32_t>> products(shares, std::vector<uint32_t>(count, 7));
  std::vector<uint32_t*> outputs;
  for (size_t v = 0; v < shares; ++v) {
    pointers.push_back(&split[v]);
    outputs.push_back(products[v].data());
  }
  MultiplyRows(rows.data(), count, pointers, outputs);
  for (size_t v = 0; v < shares; ++v) {
    for (size_t row = 0; row < count; ++row) {
      ASSERT_EQ(products[v][row], PlainProduct(&rows[row * dim], words[v]))
          << "dim " << dim << ", share " << v << " of " << shares << ", row " << row;
    }
  }
}

TEST(MultiplyRows, EqualsArithmeticIn64Bits) {
  std::mt19937_64 bits(1);
  for (const size_t dim : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 128, 130}) {
    for (const size_t count : {1, 2, 5}) {
      for (const size_t shares : {1, 2, 3, 4, 5, 8, 9, 16})
        CheckProducts(dim, count, shares, &bits);
    }
  }
}

TEST(MultiplyRows, ExtremeWordsAndRowsAreExact) {
  constexpr size_t kDimOfExtremes = 40;
  for (const uint32_t word : kExtremeWords) {
    for (const int16_t value : kExtremeRows) {
      const std::vector<uint32_t> words(kDimOfExtremes, word);
      const std::vector<int16_t> row(kDimOfExtremes, value);
      const SplitShare share(words);
      const SplitShare* const shares[] = {&share, &share, &share, &share, &share};
      uint32_t products[5] = {};
      uint32_t* const outputs[] = {&products[0], &products[1], &products[2], &products[3],
                                   &products[4]};
      MultiplyRows(row.data(), 1, shares, outputs);
      for (const uint32_t product : products) {
        EXPECT_EQ(product, PlainProduct(row.data(), words)) << word << " " << value;
      }
    }
  }
}

TEST(XorLists, EqualsLoopOverBits) {
  std::mt19937_64 bits(2);
  for (const size_t count : {1, 3, 4, 5, 7, 8, 9, 16, 21}) {
    for (const size_t stride : {1, 31, 40, 100}) {
      for (const size_t selections : {1, 3, 8}) {
        std::string lists(count * stride, '\0');
        for (char& byte : lists) byte = static_cast<char>(bits());
        const size_t first = bits() % stride, bytes = 1 + bits() % (stride - first);
        std::vector<std::string> chosen(selections, std::string((count + 7) / 8, '\0'));
        std::vector<std::string> outputs(selections, std::string(bytes + 2, 'x'));
        std::vector<uint8_t*> places;
        for (size_t s = 0; s < selections; ++s) {
          for (size_t list = 0; list < count; ++list) {
            if ((bits() & 1) != 0) chosen[s][list / 8] |= static_cast<char>(1 << (list % 8));
          }
          places.push_back(reinterpret_cast<uint8_t*>(outputs[s].data()) + 1);
        }
        XorLists(reinterpret_cast<const uint8_t*>(lists.data()), count, stride, first, bytes,
                 std::vector<absl::string_view>(chosen.begin(), chosen.end()), places);
        for (size_t s = 0; s < selections; ++s) {
          std::string expected(bytes, 'x');
          for (size_t list = 0; list < count; ++list) {
            if (((chosen[s][list / 8] >> (list % 8)) & 1) == 0) continue;
            for (size_t i = 0; i < bytes; ++i) expected[i] ^= lists[list * stride + first + i];
          }
          ASSERT_EQ(outputs[s], "x" + expected + "x") << count << " " << stride << " " << s;
        }
      }
    }
  }
}

}  // namespace
}  // namespace privatemail::server
