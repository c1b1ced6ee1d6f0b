#include "server/access/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/descriptor.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

using nlohmann::ordered_json;

absl::StatusOr<Descriptor> OpenForAppending(const std::string& path) {
  // O_NONBLOCK: opening a pipe without a reader would block.
  Descriptor file(::open(path.c_str(),
                         O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
  if (file.get() >= 0 && ::fcntl(file.get(), F_SETFL, O_APPEND) == 0) return file;
  return absl::FailedPreconditionError(
      absl::StrCat("cannot open audit log ", path, ": ", std::strerror(errno)));
}

std::string Text(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// ASCII only, so that a peer's text can neither end the line nor be invalid UTF-8.
std::string Line(const ordered_json& json) {
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

ordered_json ToJson(const AuditEntry& entry) {
  return {{"time", Text(entry.time)},
          {"rpc", entry.rpc},
          {"collection", entry.collection},
          {"subject", entry.subject},
          {"key", entry.key_id},
          {"key_name", entry.key_name},
          {"certificate", entry.certificate},
          {"peer", entry.peer},
          {"rows", entry.rows},
          {"request_bytes", entry.request_bytes},
          {"code", entry.code},
          {"ms", std::round(entry.milliseconds * 1000) / 1000}};
}

// False after another program has renamed the file.
bool IsAt(const std::string& path, const struct stat& file) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 && found.st_dev == file.st_dev &&
         found.st_ino == file.st_ino;
}

// Removes a partial line, which the next line would continue.
void RemovePartialLine(int file, ssize_t bytes) {
  const off_t end = ::lseek(file, 0, SEEK_END);
  // If this fails too, a malformed line remains.
  if (end >= bytes) (void)!::ftruncate(file, end - bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path,
                                                         int64_t max_bytes) {
  PM_ASSIGN_OR_RETURN(Descriptor file, OpenForAppending(path));
  return std::unique_ptr<AuditLog>(new AuditLog(path, std::move(file), max_bytes));
}

void AuditLog::SetMaxBytes(int64_t bytes) {
  const std::lock_guard<std::mutex> guard(mutex_);
  max_bytes_ = bytes;
}

absl::Status AuditLog::Write(const AuditEntry& entry) { return Append(Line(ToJson(entry))); }

absl::Status AuditLog::Record(absl::string_view event) {
  return Append(Line({{"time", Text(absl::Now())}, {"event", std::string(event)}}));
}

absl::Status AuditLog::RecordLeftOut(uint64_t calls) {
  return Append(Line({{"time", Text(absl::Now())}, {"event", "left out"}, {"calls", calls}}));
}

absl::Status AuditLog::RotateFor(size_t bytes) {
  struct stat file = {};
  if (max_bytes_ == 0 || ::fstat(file_.get(), &file) != 0 || !S_ISREG(file.st_mode) ||
      file.st_size == 0 || file.st_size + static_cast<int64_t>(bytes) <= max_bytes_) {
    return absl::OkStatus();
  }
  const std::string former = path_ + ".1";
  if (IsAt(path_, file) && std::rename(path_.c_str(), former.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("audit log ", path_, " has reached ", max_bytes_,
                                               " bytes (audit_max_bytes) and cannot be renamed to ",
                                               former, ": ", std::strerror(errno)));
  }
  absl::StatusOr<Descriptor> fresh = OpenForAppending(path_);
  if (!fresh.ok()) return absl::UnavailableError(fresh.status().message());
  file_ = *std::move(fresh);
  return absl::OkStatus();
}

absl::Status AuditLog::Append(const std::string& line) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_RETURN_IF_ERROR(RotateFor(line.size()));
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
  const absl::Status status = absl::UnavailableError(absl::StrCat(
      "cannot write audit log ", path_, ": ", written < 0 ? std::strerror(errno) : "disk full"));
  if (written > 0) RemovePartialLine(file_.get(), written);
  return status;
}

absl::Status AuditLog::Reopen() {
  PM_ASSIGN_OR_RETURN(Descriptor file, OpenForAppending(path_));
  const std::lock_guard<std::mutex> guard(mutex_);
  file_ = std::move(file);
  return absl::OkStatus();
}

}  // namespace privatemail::server
