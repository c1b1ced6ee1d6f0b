#include "common/sqlite/checksums.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace privatemail::sqlite {
namespace {

constexpr int kSmallestPage = 512;
constexpr int kPageBytesOffset = 16;  // in the header
constexpr int kLargestPage = 65536;   // which the header states as 1

using Sum = std::array<uint32_t, 2>;

constexpr int kSaltsOffset = 8;  // in the header of a frame
constexpr int kSumOffset = 16;

uint32_t BigEndian(const unsigned char* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

uint32_t LittleEndian(const unsigned char* at) {
  return uint32_t{at[3]} << 24 | uint32_t{at[2]} << 16 | uint32_t{at[1]} << 8 | at[0];
}

// size: a multiple of 8.
Sum Add(const unsigned char* bytes, int size, bool big_endian, Sum sum) {
  const auto word = big_endian ? BigEndian : LittleEndian;
  for (int i = 0; i < size; i += 8) {
    sum[0] += word(bytes + i) + sum[1];
    sum[1] += word(bytes + i + 4) + sum[0];
  }
  return sum;
}

Sum StoredSum(const unsigned char* at) { return {BigEndian(at), BigEndian(at + 4)}; }

}  // namespace

bool IsPage(int bytes, int64_t offset) {
  return bytes >= kSmallestPage && (bytes & (bytes - 1)) == 0 && offset % bytes == 0;
}

int PageBytesOf(const unsigned char* header) {
  const int stated = header[kPageBytesOffset] * 256 + header[kPageBytesOffset + 1];
  const int bytes = stated == 1 ? kLargestPage : stated;
  return IsPage(bytes, 0) ? bytes : 0;
}

PageChecksum ChecksumOfPage(const unsigned char* page, int bytes, int64_t offset) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(page, static_cast<size_t>(bytes - kPageChecksumBytes), digest.data());
  const auto number = static_cast<uint64_t>(offset / bytes);
  PageChecksum checksum;
  for (size_t i = 0; i < checksum.size(); ++i) {
    checksum[i] = digest[i] ^ static_cast<unsigned char>(number >> (56 - 8 * i));
  }
  return checksum;
}

std::optional<bool> ReadLogFlag(const unsigned char* page, int bytes) {
  PageChecksum checksum = ChecksumOfPage(page, bytes, 0);
  const unsigned char* stored = page + bytes - kPageChecksumBytes;
  if (std::equal(checksum.begin(), checksum.end(), stored)) return false;
  checksum.back() = WithLogFlag(checksum.back());
  if (std::equal(checksum.begin(), checksum.end(), stored)) return true;
  return std::nullopt;
}

bool PageMatches(const unsigned char* page, int bytes, int64_t offset) {
  if (offset == 0) return ReadLogFlag(page, bytes).has_value();
  const PageChecksum checksum = ChecksumOfPage(page, bytes, offset);
  return std::equal(checksum.begin(), checksum.end(), page + bytes - kPageChecksumBytes);
}

std::optional<WalHeader> ReadWalHeader(ReadWal read) {
  std::array<unsigned char, kWalHeaderBytes> bytes;
  if (!read(0, kWalHeaderBytes, bytes.data())) return std::nullopt;
  constexpr uint32_t kMagic = 0x377f0682;
  const uint32_t magic = BigEndian(bytes.data());
  const uint32_t page_bytes = BigEndian(bytes.data() + 8);
  if ((magic & ~1U) != kMagic || page_bytes < 512 || page_bytes > 65536) return std::nullopt;
  WalHeader header;
  header.page_bytes = static_cast<int>(page_bytes);
  header.big_endian = (magic & 1) != 0;
  std::copy_n(bytes.begin() + 16, header.salts.size(), header.salts.begin());
  header.checksum = Add(bytes.data(), 24, header.big_endian, {0, 0});
  if (header.checksum != StoredSum(bytes.data() + 24)) return std::nullopt;
  return header;
}

int64_t FrameOffset(const WalHeader& header, int64_t frame) {
  return kWalHeaderBytes + frame * (int64_t{kFrameHeaderBytes} + header.page_bytes);
}

int64_t PageOffset(const WalHeader& header, int64_t frame) {
  return FrameOffset(header, frame) + kFrameHeaderBytes;
}

bool FrameMatches(const WalHeader& header, int64_t frame, const unsigned char* page, ReadWal read) {
  std::array<unsigned char, kFrameHeaderBytes> own;
  std::array<unsigned char, kFrameHeaderBytes> previous;
  Sum sum = header.checksum;
  if (frame > 0) {
    if (!read(FrameOffset(header, frame - 1), kFrameHeaderBytes, previous.data())) return false;
    sum = StoredSum(previous.data() + kSumOffset);
  }
  if (!read(FrameOffset(header, frame), kFrameHeaderBytes, own.data()) ||
      !std::equal(header.salts.begin(), header.salts.end(), own.begin() + kSaltsOffset)) {
    return false;
  }
  sum = Add(own.data(), kSaltsOffset, header.big_endian, sum);
  return Add(page, header.page_bytes, header.big_endian, sum) == StoredSum(own.data() + kSumOffset);
}

bool WalMatches(const WalHeader& header, int64_t frames, ReadWal read) {
  std::vector<unsigned char> page(static_cast<size_t>(header.page_bytes));
  for (int64_t frame = 0; frame < frames; ++frame) {
    if (!read(PageOffset(header, frame), header.page_bytes, page.data()) ||
        !FrameMatches(header, frame, page.data(), read)) {
      return false;
    }
  }
  return true;
}

}  // namespace privatemail::sqlite
