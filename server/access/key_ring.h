// All keys of a daemon.
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
#include "server/access/key_file.h"

namespace privatemail::server {

// Thread-safe. In memory for calls, in the key file for good: a change is on disk before it takes
// effect, and takes effect with the next call. Only a key that is revoked is so even if that cannot
// be written.
class KeyRing {
 public:
  // Reads the file. When there is none, makes an admin key of all collections, whose text is
  // written to `admin_key_path` (mode 0600) and nowhere else, and then the file. Errors: those of
  // KeyFile, and of writing.
  static absl::StatusOr<std::unique_ptr<KeyRing>> Open(KeyFile file,
                                                       const std::string& admin_key_path);

  // Whether Open made the admin key.
  bool made_admin_key() const { return made_admin_key_; }

  // The key with this text, valid at `now`. UNAUTHENTICATED otherwise, with the same message and
  // after the same work whether the key is unknown, wrong or revoked; the holder of an expired one
  // is told since when.
  absl::StatusOr<std::shared_ptr<const AccessKey>> Authenticate(absl::string_view text,
                                                                absl::Time now = absl::Now()) const;

  // Of a call that goes on for long: UNAUTHENTICATED when its key was revoked or expired meanwhile.
  absl::Status CheckValid(absl::string_view id, absl::Time now) const;

  // INVALID_ARGUMENT naming the field; RESOURCE_EXHAUSTED beyond 10,000 valid keys; errors of the
  // file.
  absl::StatusOr<NewAccessKey> Create(KeyGrant grant);

  // By time of creation. Of revoked and expired ones, the 1000 that ended last when a key was last
  // created or revoked.
  std::vector<AccessKey> List() const;

  // Returns the key; one that is revoked already stays as it is. NOT_FOUND; FAILED_PRECONDITION: it
  // is the last admin key of all collections that does not expire. Errors of the file: it is
  // revoked until the next start or reload, which the message says; revoking it again tries to
  // write again.
  absl::StatusOr<AccessKey> Revoke(absl::string_view id);

  // Reads the file again. Returns the ids of keys that are valid again because it was not written
  // that they were revoked. On an error the keys stay as they were.
  absl::StatusOr<std::vector<std::string>> Reload();

 private:
  using Keys = std::map<std::string, std::shared_ptr<const AccessKey>, std::less<>>;

  explicit KeyRing(KeyFile file) : file_(std::move(file)) {}

  // Saves and then serves `keys`, without those that ended long ago. change_mutex_ is held.
  absl::Status Replace(std::vector<AccessKey> keys);
  void Serve(std::vector<AccessKey> keys);

  const KeyFile file_;
  bool made_admin_key_ = false;
  std::mutex change_mutex_;                       // one change at a time; taken before mutex_
  std::set<std::string, std::less<>> unwritten_;  // revoked in memory alone; under change_mutex_
  mutable std::mutex mutex_;                      // guards keys_; never held over the disk
  Keys keys_;                                     // by id
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_KEY_RING_H_
