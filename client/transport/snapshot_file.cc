#include "client/transport/snapshot_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/wire/snapshot.h"

namespace privatemail::client {
namespace {

// Bytes of the file.
struct SizeLimit {
  int64_t bytes = 0;
  std::string reason;
};

// - Twice the size of the announced anchors and items, with kTextBytes for the id, label and
//   payload of each.
// - At most half of what is free where the file is written: the server announces what it likes.
SizeLimit DefaultMaxBytes(const v1::GetCollectionResponse& collection, const std::string& out) {
  constexpr double kTextBytes = 1000;
  constexpr double kHeadBytes = 1'000'000;  // parameters and framing
  const v1::PublicParameters& parameters = collection.parameters();
  const double rows =
      static_cast<double>(collection.items()) + static_cast<double>(parameters.anchor_count());
  const double row = sizeof(float) * static_cast<double>(parameters.feature_dim()) + kTextBytes;
  const double expected =
      2 * (kHeadBytes + static_cast<double>(parameters.ByteSizeLong()) + rows * row);
  std::error_code error;
  const auto space =
      std::filesystem::space(std::filesystem::absolute(out, error).parent_path(), error);
  const double half_free = error ? 0 : static_cast<double>(space.available) / 2;
  if (expected <= half_free) {
    return {static_cast<int64_t>(expected), "twice what the collection's counts suggest"};
  }
  return {static_cast<int64_t>(half_free), "half of the free space there"};
}

absl::StatusOr<SizeLimit> SizeLimitOf(const AdminClient& admin, const std::string& name,
                                      const std::string& path, int64_t max_bytes) {
  if (max_bytes > 0) return SizeLimit{max_bytes, "as given"};
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection, admin.GetCollection(name));
  return DefaultMaxBytes(collection, path);
}

absl::Status CheckSize(int64_t bytes, const SizeLimit& limit) {
  if (bytes <= limit.bytes) return absl::OkStatus();
  return FieldError(absl::StatusCode::kResourceExhausted, "max_bytes",
                    absl::StrCat("at least ", bytes, " for what the server has sent so far"),
                    absl::StrCat(limit.bytes, " (", limit.reason, ")"));
}

// A snapshot file to read from its beginning, twice: to verify and to send.
class SnapshotFile {
 public:
  static absl::StatusOr<SnapshotFile> Open(const std::string& path) {
    SnapshotFile opened(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (opened.file_ >= 0) opened.size_ = ::lseek(opened.file_, 0, SEEK_END);
    if (opened.size_ < 0) return opened.Unreadable();
    PM_RETURN_IF_ERROR(opened.Rewind());
    return opened;
  }
  ~SnapshotFile() {
    if (file_ >= 0) ::close(file_);
  }
  SnapshotFile(SnapshotFile&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}
  SnapshotFile& operator=(SnapshotFile&&) = delete;

  absl::Status Rewind() {
    return ::lseek(file_, 0, SEEK_SET) == 0 ? absl::OkStatus() : Unreadable();
  }

  // Reads at most kSnapshotPieceBytes; false at the end.
  absl::StatusOr<bool> Next(std::string* piece) {
    piece->resize(kSnapshotPieceBytes);
    const ssize_t bytes = ::read(file_, piece->data(), piece->size());
    if (bytes < 0) return Unreadable();
    piece->resize(static_cast<size_t>(bytes));
    return bytes > 0;
  }

  int64_t size() const { return size_; }

 private:
  SnapshotFile(std::string path, int file) : path_(std::move(path)), file_(file) {}

  absl::Status Unreadable() const {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot ", path_, " cannot be read: ", std::strerror(errno)));
  }

  std::string path_;
  int file_;
  int64_t size_ = -1;
};

// Checks the whole file; returns its first block.
absl::StatusOr<v1::SnapshotCollection> Verify(const std::string& path,
                                              const SnapshotProgress& progress,
                                              SnapshotFile* file) {
  SnapshotReader reader;
  std::string piece;
  int64_t done = 0;
  absl::Status status;
  while (status.ok()) {
    PM_ASSIGN_OR_RETURN(const bool more, file->Next(&piece));
    if (!more) break;
    status = reader.Read(piece);
    done += static_cast<int64_t>(piece.size());
    if (progress) progress(done, file->size());
  }
  if (status.ok()) status = reader.Finish();
  if (status.ok()) return reader.head();
  return absl::Status(status.code(), absl::StrCat("snapshot ", path, ": ", status.message()));
}

}  // namespace

absl::StatusOr<SavedSnapshot> SaveSnapshot(const AdminClient& admin, const std::string& name,
                                           const std::string& path, PrivateFile::Existing existing,
                                           int64_t max_bytes, const SnapshotProgress& progress) {
  PM_ASSIGN_OR_RETURN(const auto file, PrivateFile::Create("snapshot", path, existing));
  PM_ASSIGN_OR_RETURN(const SizeLimit limit, SizeLimitOf(admin, name, path, max_bytes));
  // Detects a damaged snapshot while it can be fetched again.
  SavedSnapshot saved;
  SnapshotReader check;
  const auto checked = [&](const absl::Status& status) -> absl::Status {
    if (status.ok()) return status;
    return absl::DataLossError(absl::StrCat("the snapshot that the server sent for ", path,
                                            " is damaged: ", status.message()));
  };
  PM_RETURN_IF_ERROR(admin.SnapshotCollection(name, [&](absl::string_view piece) -> absl::Status {
    saved.bytes += std::ssize(piece);
    PM_RETURN_IF_ERROR(CheckSize(saved.bytes, limit));
    PM_RETURN_IF_ERROR(checked(check.Read(piece)));
    if (progress) {
      progress(static_cast<int64_t>(check.items()), static_cast<int64_t>(check.head().items()));
    }
    return file->Append(piece);
  }));
  PM_RETURN_IF_ERROR(checked(check.Finish()));
  PM_RETURN_IF_ERROR(file->Commit(""));
  saved.latest_version = check.head().latest_version();
  saved.items = static_cast<int64_t>(check.items());
  saved.anchors = static_cast<int64_t>(check.anchors());
  return saved;
}

absl::StatusOr<RestoredCollection> RestoreSnapshot(const AdminClient& admin,
                                                   const std::string& name, const std::string& path,
                                                   const SnapshotProgress& verified,
                                                   const SnapshotProgress& sent) {
  PM_ASSIGN_OR_RETURN(SnapshotFile file, SnapshotFile::Open(path));
  PM_ASSIGN_OR_RETURN(const v1::SnapshotCollection head, Verify(path, verified, &file));
  PM_RETURN_IF_ERROR(file.Rewind());
  int64_t done = 0;
  PM_ASSIGN_OR_RETURN(const v1::RestoreCollectionResponse response,
                      admin.RestoreCollection(name, [&](std::string* piece) {
                        const absl::StatusOr<bool> more = file.Next(piece);
                        done += static_cast<int64_t>(piece->size());
                        if (sent) sent(done, file.size());
                        return more;
                      }));
  RestoredCollection restored{.collection = response.collection(), .snapshot_of = head.name()};
  restored.same_digest =
      restored.collection.parameters().collection_uuid() == head.parameters().collection_uuid();
  return restored;
}

}  // namespace privatemail::client
