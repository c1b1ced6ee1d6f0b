#include "common/sqlite/page_checksum.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cstddef>

namespace privatemail::sqlite {
namespace {

constexpr int kSmallestPage = 512;
constexpr int kPageBytesOffset = 16;  // in the header
constexpr int kLargestPage = 65536;   // which the header states as 1

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

}  // namespace privatemail::sqlite
