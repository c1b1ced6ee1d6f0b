#include "common/features/feature_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/digests.h"

namespace privatemail {
namespace {

// A record: the image's SHA-256, the feature, the beginning of the SHA-256 of both.
constexpr size_t kKeyBytes = 32;
constexpr size_t kCheckBytes = 8;

std::string Check(absl::string_view key_and_feature) {
  return Sha256::Of(key_and_feature).substr(0, kCheckBytes);
}

}  // namespace

size_t FeatureCache::RecordBytes() const {
  return kKeyBytes + static_cast<size_t>(dim_) * sizeof(float) + kCheckBytes;
}

absl::Status FeatureCache::Failed(absl::string_view doing) const {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", doing, " ", path_, ": ", std::strerror(errno)));
}

absl::StatusOr<std::unique_ptr<FeatureCache>> FeatureCache::Open(
    const std::string& folder, absl::string_view extractor_identity, int dim) {
  const std::string path = absl::StrCat(
      folder, "/", absl::BytesToHexString(Sha256::Of(extractor_identity)), ".features");
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  std::unique_ptr<FeatureCache> cache(new FeatureCache(path, file, dim));
  if (file < 0) return cache->Failed("open (does its folder exist?)");
  const auto record = static_cast<off_t>(cache->RecordBytes());
  std::string key(kKeyBytes, '\0');
  const off_t size = ::lseek(file, 0, SEEK_END);
  for (off_t place = 0; place + record <= size; place += record) {
    if (::pread(file, key.data(), kKeyBytes, place) != kKeyBytes) return cache->Failed("read");
    cache->place_of_[key] = place;
  }
  return cache;
}

FeatureCache::~FeatureCache() {
  if (file_ >= 0) ::close(file_);
}

std::optional<Eigen::RowVectorXf> FeatureCache::Find(const std::string& sha256) const {
  std::string record(RecordBytes(), '\0');
  {
    const std::lock_guard lock(mutex_);
    const auto found = place_of_.find(sha256);
    if (found == place_of_.end() ||
        ::pread(file_, record.data(), record.size(), found->second) != std::ssize(record)) {
      return std::nullopt;
    }
  }
  const std::string check = record.substr(record.size() - kCheckBytes);
  record.resize(record.size() - kCheckBytes);
  if (Check(record) != check || !record.starts_with(sha256)) return std::nullopt;
  Eigen::RowVectorXf feature(dim_);
  std::memcpy(feature.data(), record.data() + kKeyBytes, record.size() - kKeyBytes);
  return feature;
}

absl::Status FeatureCache::Add(const std::string& sha256, const Eigen::RowVectorXf& feature) {
  std::string record =
      absl::StrCat(sha256, absl::string_view(reinterpret_cast<const char*>(feature.data()),
                                             static_cast<size_t>(feature.size()) * sizeof(float)));
  record += Check(record);
  const std::lock_guard lock(mutex_);
  // Other processes append, too.
  if (::flock(file_, LOCK_EX) != 0) return Failed("lock");
  const off_t size = ::lseek(file_, 0, SEEK_END);
  const off_t place = size - size % std::ssize(record);  // over what a killed process left
  errno = ENOSPC;                                        // what a shorter write means
  const bool written = ::pwrite(file_, record.data(), record.size(), place) == std::ssize(record);
  const absl::Status failed = written ? absl::OkStatus() : Failed("write");
  ::flock(file_, LOCK_UN);
  if (written) place_of_[sha256] = place;
  return failed;
}

}  // namespace privatemail
