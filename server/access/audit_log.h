// The audit log: one line per call.
#ifndef PRIVATEMAIL_SERVER_ACCESS_AUDIT_LOG_H_
#define PRIVATEMAIL_SERVER_ACCESS_AUDIT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/descriptor.h"

namespace privatemail::server {

// One call. No vectors, payloads, slots, filters, item ids or key texts.
struct AuditEntry {
  absl::Time time;  // end of the call
  std::string rpc;
  std::string collection;  // as in the request
  std::string subject;     // id of the key that was created or revoked
  std::string key_id;      // empty: no valid key
  std::string key_name;
  std::string certificate;  // common name of the client's certificate
  std::string peer;         // address
  uint64_t rows = 0;        // items, anchors or matches received, sent or counted
  uint64_t request_bytes = 0;
  std::string code;  // of the status, "OK"
  double milliseconds = 0;
};

// Appends one line of JSON per call and per event of the daemon to a file of mode 0600:
//
//   {"time":"2026-01-31T11:00:00.000Z","event":"start"}
//   {"time":"2026-01-31T12:00:00.123Z","rpc":"Retrieve","collection":"fruit","subject":"",
//    "key":"1f0c66a1e1f2","key_name":"reader","certificate":"","peer":"ipv4:127.0.0.1:40100",
//    "rows":80,"request_bytes":2168,"code":"OK","ms":0.512}
//
// Each line is one write, so several logs, also of several processes, may share a file. Lines are
// not synced: they survive the daemon, but the last may be lost with power. Thread-safe.
class AuditLog {
 public:
  // max_bytes: a regular file that would exceed it is renamed to PATH.1, replacing a former one, so
  // the disk holds at most twice as many bytes; 0: no limit. FAILED_PRECONDITION: the file cannot
  // be opened.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, int64_t max_bytes);

  void SetMaxBytes(int64_t bytes);

  // UNAVAILABLE: the file cannot be written or renamed; nothing of the line is in it.
  absl::Status Write(const AuditEntry& entry);

  // event: "start", "reload" or "stop". Statuses of Write.
  absl::Status Record(absl::string_view event);

  // A summary of calls without a valid key that have no lines. Statuses of Write.
  //   {"time":"2026-01-31T12:00:01.123Z","event":"left out","calls":9384}
  absl::Status RecordLeftOut(uint64_t calls);

  // Opens the path again, after an external rotation. On an error it continues with the former
  // file.
  absl::Status Reopen();

 private:
  AuditLog(std::string path, Descriptor file, int64_t max_bytes)
      : path_(std::move(path)), file_(std::move(file)), max_bytes_(max_bytes) {}

  absl::Status Append(const std::string& line);
  // Rotates if this many bytes would exceed the limit. Requires mutex_.
  absl::Status RotateFor(size_t bytes);

  const std::string path_;
  std::mutex mutex_;  // guards the following
  Descriptor file_;
  int64_t max_bytes_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_AUDIT_LOG_H_
