// Access keys in memory and on disk.
#ifndef PRIVATEMAIL_SERVER_ACCESS_KEY_RING_H_
#define PRIVATEMAIL_SERVER_ACCESS_KEY_RING_H_

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
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

// Access keys in memory, backed by a key file. A change is written before it takes effect, except a
// revocation, which takes effect even if it cannot be written. Thread-safe.
class KeyRing {
 public:
  // Reads the file. If there is none, creates an admin key of all collections, writes its text to
  // `admin_key_path` (mode 0600) and then the file. Errors of KeyFile and of writing.
  static absl::StatusOr<std::unique_ptr<KeyRing>> Open(KeyFile file,
                                                       const std::string& admin_key_path);

  bool made_admin_key() const { return made_admin_key_; }

  // The key with this text. UNAUTHENTICATED: unknown, wrong or revoked, with one message and after
  // the same work; or expired by `now`, with the time of expiry.
  absl::StatusOr<std::shared_ptr<const AccessKey>> Authenticate(absl::string_view text,
                                                                absl::Time now = absl::Now()) const;

  // For long calls. UNAUTHENTICATED: the key was revoked or has expired since the call began.
  absl::Status CheckValid(absl::string_view id, absl::Time now) const;

  // INVALID_ARGUMENT naming the field; RESOURCE_EXHAUSTED beyond 10,000 valid keys; errors of the
  // file.
  absl::StatusOr<NewAccessKey> Create(KeyGrant grant);

  // By time of creation. Includes the 1000 keys that were revoked or expired last.
  std::vector<AccessKey> List() const;

  // Idempotent. NOT_FOUND. FAILED_PRECONDITION: the last admin key of all collections that does not
  // expire. Errors of the file: the key is revoked until the next start or reload; a retry writes
  // the revocation.
  absl::StatusOr<AccessKey> Revoke(absl::string_view id);

  // Reads the file again. Returns the ids of keys whose revocation was not written and which are
  // therefore valid again. On an error the keys stay unchanged.
  absl::StatusOr<std::vector<std::string>> Reload();

 private:
  using Keys = std::map<std::string, std::shared_ptr<const AccessKey>, std::less<>>;

  explicit KeyRing(KeyFile file) : file_(std::move(file)) {}

  // Writes and then serves the keys without old ended ones. Requires change_mutex_.
  absl::Status Replace(std::vector<AccessKey> keys);
  void Serve(std::vector<AccessKey> keys);

  const KeyFile file_;
  bool made_admin_key_ = false;
  std::mutex change_mutex_;                       // serializes changes; locked before mutex_
  std::set<std::string, std::less<>> unwritten_;  // revoked in memory only; under change_mutex_
  mutable std::mutex mutex_;                      // guards keys_; not held during file access
  Keys keys_;                                     // by id
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_KEY_RING_H_
