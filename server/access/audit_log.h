// Who did what.
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

namespace privatemail::server {

// One call. Has no field for vectors, payloads, slots, filters, ids of items or texts of keys.
struct AuditEntry {
  absl::Time time;  // of its end
  std::string rpc;
  std::string collection;  // as the caller named it
  std::string subject;     // id of the key that was made or revoked; empty: none was
  std::string key_id;      // empty: none, or none that is valid
  std::string key_name;
  std::string certificate;  // common name of the client's
  std::string peer;         // address
  uint64_t rows = 0;        // items, anchors or matches that went in or out, or were counted
  uint64_t request_bytes = 0;
  std::string code;  // of the status, "OK"
  double milliseconds = 0;
};

// Appends to a file of mode 0600, a line of JSON a call and one for each event of the daemon's:
//
//   {"time":"2026-01-31T11:00:00.000Z","event":"start"}
//   {"time":"2026-01-31T12:00:00.123Z","rpc":"Retrieve","collection":"birds","subject":"",
//    "key":"1f0c66a1e1f2","key_name":"reader","certificate":"","peer":"ipv4:127.0.0.1:40100",
//    "rows":80,"request_bytes":2168,"code":"OK","ms":0.512}
//
// Thread-safe; each line is one write, so that several logs, of several processes even, may be open
// on one file. Nothing is synced: the last lines may be lost with the machine's power, not with the
// daemon.
class AuditLog {
 public:
  // max_bytes, 0 for no limit: a regular file that a line would make larger is renamed to PATH.1,
  // which is replaced, and a new one begun: on disk are never more than twice so many bytes.
  // FAILED_PRECONDITION naming the file, which cannot be opened.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, int64_t max_bytes);
  ~AuditLog();

  // From the next line on.
  void SetMaxBytes(int64_t bytes);

  // UNAVAILABLE naming the file, which cannot be written, or has reached its size and cannot be
  // renamed; then nothing of the line is in it.
  absl::Status Write(const AuditEntry& entry);

  // The same for what the daemon itself did: "start", "reload" or "stop".
  absl::Status Record(absl::string_view event);

  // The same for calls without a valid key that had no line each (LineBudget):
  //   {"time":"2026-01-31T12:00:01.123Z","event":"left out","calls":9384}
  absl::Status RecordLeftOut(uint64_t calls);

  // Goes on in the file of that name, after another program has moved the former one away. On an
  // error it stays with the former.
  absl::Status Reopen();

 private:
  AuditLog(std::string path, int file, int64_t max_bytes)
      : path_(std::move(path)), file_(file), max_bytes_(max_bytes) {}

  absl::Status Append(const std::string& line);
  // Makes place for so many bytes. mutex_ is held.
  absl::Status RotateFor(size_t bytes);

  const std::string path_;
  std::mutex mutex_;  // guards the following
  int file_;
  int64_t max_bytes_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_AUDIT_LOG_H_
