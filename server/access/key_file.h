// Keys on disk.
#ifndef PRIVATEMAIL_SERVER_ACCESS_KEY_FILE_H_
#define PRIVATEMAIL_SERVER_ACCESS_KEY_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/access_key.h"

namespace privatemail::server {

// Where a key ring keeps its keys: all of them are read at once and written at once, which is all
// that keys shared between several daemons would need of another place. Lines of text:
//
//   privatemail keys 1    2 where a key expires
//   {"id":...}            one key a line, as JSON; salt and digest in hex; expires_at if it does
//   sha256 HEX            of all bytes before this line
//
// Programs that know no expiry, and would let an expired key in, refuse version 2; what they can
// serve is still written as they read it.
//
// A file rather than a table, because one checksum over the whole notices every damage: a key that
// lost its revocation must not come to life again.
class KeyFile {
 public:
  explicit KeyFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  bool Exists() const;

  // FAILED_PRECONDITION: cannot be read, or is of a newer version. DATA_LOSS: any byte differs from
  // what was written.
  absl::StatusOr<std::vector<AccessKey>> Load() const;

  // When it returns OK, the keys survive a loss of power; otherwise those before them do. Mode
  // 0600. RESOURCE_EXHAUSTED: the disk is full. FAILED_PRECONDITION with the reason otherwise.
  absl::Status Save(const std::vector<AccessKey>& keys) const;

 private:
  std::string path_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_KEY_FILE_H_
