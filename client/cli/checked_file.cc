#include "client/cli/checked_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/cli/private_file.h"
#include "common/base/sha256.h"

namespace privatemail::client::cli {
namespace {

constexpr size_t kDigestBytes = 32;

}  // namespace

absl::Status SaveChecked(const std::string& what, const std::string& path,
                         absl::string_view content) {
  absl::StatusOr<PrivateFile> file = PrivateFile::Create(what, path);
  if (!file.ok()) return absl::UnavailableError(file.status().message());
  return file->Commit(absl::StrCat(Sha256::Of(content), content));
}

absl::StatusOr<std::string> LoadChecked(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a folder, not a file"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, " is not there"));
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string digest = bytes.substr(0, kDigestBytes);
  bytes.erase(0, std::min(bytes.size(), kDigestBytes));
  if (digest == Sha256::Of(bytes)) return bytes;
  return DamagedFile(path);
}

absl::Status DamagedFile(const std::string& path) {
  return absl::DataLossError(absl::StrCat(path, " is damaged, or of another version"));
}

}  // namespace privatemail::client::cli
