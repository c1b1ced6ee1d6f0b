#include "common/features/vector_file.h"

#include <bit>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/features/vector_formats.h"

namespace privatemail {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied byte by byte");

absl::Status WriteNpyBytes(const std::string& path, absl::string_view descr,
                           absl::string_view shape, const void* values, size_t size) {
  std::string header =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr size_t kBeforeHeader = 10, kAlignment = 64;
  while ((kBeforeHeader + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be opened to write"));
  file.write("\x93NUMPY\x01\x00", 8);
  file.put(static_cast<char>(header.size() & 0xff)).put(static_cast<char>(header.size() >> 8));
  file << header;
  file.write(static_cast<const char*>(values), static_cast<std::streamsize>(size));
  file.close();
  if (!file) return absl::DataLossError(absl::StrCat(path, ": cannot be written to its end"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FloatMatrix> ParseVectors(absl::string_view name, absl::string_view bytes) {
  if (absl::EndsWithIgnoreCase(name, ".npy")) return ParseNpyVectors(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".fvecs")) return ParseFvecs(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".ivecs")) return ParseIvecs(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".csv")) return ParseCsvVectors(name, bytes);
  return BadFile(name, "expected a name that ends in .npy, .fvecs, .ivecs or .csv");
}

absl::StatusOr<std::vector<int32_t>> ParseLabels(absl::string_view name, absl::string_view bytes) {
  if (absl::EndsWithIgnoreCase(name, ".npy")) return ParseNpyLabels(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".ivecs")) return ParseIvecsLabels(name, bytes);
  if (absl::EndsWithIgnoreCase(name, ".csv") || absl::EndsWithIgnoreCase(name, ".txt")) {
    return ParseCsvLabels(name, bytes);
  }
  return BadFile(name, "expected a name that ends in .npy, .ivecs, .csv or .txt");
}

absl::StatusOr<FloatMatrix> ReadVectors(const std::string& path) {
  PM_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(path));
  return ParseVectors(path, bytes);
}

absl::StatusOr<std::vector<int32_t>> ReadLabels(const std::string& path) {
  PM_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(path));
  return ParseLabels(path, bytes);
}

absl::Status WriteNpy(const std::string& path, const FloatMatrix& vectors) {
  return WriteNpyBytes(path, "<f4", absl::StrCat(vectors.rows(), ", ", vectors.cols()),
                       vectors.data(), static_cast<size_t>(vectors.size()) * sizeof(float));
}

absl::Status WriteNpy(const std::string& path, absl::Span<const int32_t> labels) {
  return WriteNpyBytes(path, "<i4", absl::StrCat(labels.size(), ","), labels.data(),
                       labels.size() * sizeof(int32_t));
}

}  // namespace privatemail
