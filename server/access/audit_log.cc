#include "server/access/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

absl::StatusOr<int> OpenForAppending(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  return absl::FailedPreconditionError(
      absl::StrCat("cannot open audit log ", path, ": ", std::strerror(errno)));
}

std::string Line(const AuditEntry& entry) {
  const nlohmann::ordered_json line = {
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", entry.time, absl::UTCTimeZone())},
      {"rpc", entry.rpc},
      {"collection", entry.collection},
      {"key", entry.key_id},
      {"key_name", entry.key_name},
      {"certificate", entry.certificate},
      {"peer", entry.peer},
      {"rows", entry.rows},
      {"request_bytes", entry.request_bytes},
      {"code", entry.code},
      {"ms", std::round(entry.milliseconds * 1000) / 1000}};
  // ASCII only: what a peer sent can neither end the line nor be no UTF-8.
  return line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

// Takes the beginning of a line back that had no place: the next line would go on where it ends.
void TakeBack(int file, ssize_t bytes) {
  const off_t end = ::lseek(file, 0, SEEK_END);
  // Where that fails, too, a line that nobody can parse is what is left to tell of it.
  if (end >= bytes) (void)!::ftruncate(file, end - bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path) {
  PM_ASSIGN_OR_RETURN(const int file, OpenForAppending(path));
  return std::unique_ptr<AuditLog>(new AuditLog(path, file));
}

AuditLog::~AuditLog() { ::close(file_); }

absl::Status AuditLog::Write(const AuditEntry& entry) {
  const std::string line = Line(entry);
  const std::lock_guard<std::mutex> guard(mutex_);
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
  const absl::Status status = absl::UnavailableError(absl::StrCat(
      "cannot write audit log ", path_, ": ", written < 0 ? std::strerror(errno) : "disk full"));
  if (written > 0) TakeBack(file_, written);
  return status;
}

absl::Status AuditLog::Reopen() {
  PM_ASSIGN_OR_RETURN(const int file, OpenForAppending(path_));
  const std::lock_guard<std::mutex> guard(mutex_);
  ::close(file_);
  file_ = file;
  return absl::OkStatus();
}

}  // namespace privatemail
