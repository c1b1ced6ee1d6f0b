// A file of features of images, so that no image is extracted twice.
#ifndef PRIVATEMAIL_COMMON_FEATURES_FEATURE_CACHE_H_
#define PRIVATEMAIL_COMMON_FEATURES_FEATURE_CACHE_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"

namespace privatemail {

// Features by the SHA-256 of the image's bytes, in one file for each extractor, in the clear.
// Append-only: a killed process loses the record that it was writing, no other. A damaged record
// counts as absent. Memory: about 100 bytes an image. Thread-safe; several processes may share a
// file, and do not see what others add.
class FeatureCache {
 public:
  // Creates the file in an existing folder unless it is there.
  // FAILED_PRECONDITION: it cannot be opened or read; names it.
  static absl::StatusOr<std::unique_ptr<FeatureCache>> Open(const std::string& folder,
                                                            absl::string_view extractor_identity,
                                                            int dim);
  ~FeatureCache();
  FeatureCache(const FeatureCache&) = delete;
  FeatureCache& operator=(const FeatureCache&) = delete;

  // sha256: 32 bytes.
  std::optional<Eigen::RowVectorXf> Find(const std::string& sha256) const;
  // FAILED_PRECONDITION: the record cannot be written, such as to a full disk.
  absl::Status Add(const std::string& sha256, const Eigen::RowVectorXf& feature);

 private:
  FeatureCache(std::string path, int file, int dim) : path_(path), file_(file), dim_(dim) {}
  size_t RecordBytes() const;
  absl::Status Failed(absl::string_view doing) const;

  const std::string path_;
  const int file_;
  const int dim_;
  mutable std::mutex mutex_;  // guards the following
  std::unordered_map<std::string, off_t> place_of_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_FEATURE_CACHE_H_
