// The key file: access keys on disk.
#ifndef PRIVATEMAIL_SERVER_ACCESS_KEY_FILE_H_
#define PRIVATEMAIL_SERVER_ACCESS_KEY_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/access_key.h"

namespace privatemail::server {

// Reads and writes all keys at once. Lines of text:
//
//   privatemail keys 1    version
//   {"id":...}            one key a line, as JSON; salt and digest in hex
//   sha256 HEX            of all bytes before this line
//
// A file rather than a table, because one checksum over all keys detects every damage: a key must
// not become valid again by losing its revocation.
class KeyFile {
 public:
  explicit KeyFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  bool Exists() const;

  // FAILED_PRECONDITION: unreadable, or a newer version. DATA_LOSS: the checksum does not match.
  absl::StatusOr<std::vector<AccessKey>> Load() const;

  // Durable and atomic, mode 0600. RESOURCE_EXHAUSTED: the disk is full. FAILED_PRECONDITION: any
  // other error.
  absl::Status Save(const std::vector<AccessKey>& keys) const;

 private:
  std::string path_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_KEY_FILE_H_
