// The last release that left this machine, kept so that its owner can look at it.
#ifndef PRIVATEMAIL_CLIENT_CLI_LAST_RELEASE_H_
#define PRIVATEMAIL_CLIENT_CLI_LAST_RELEASE_H_

#include <string>

#include "absl/status/statusor.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::cli {

// Exactly what a server received, and the public parameters it belongs to. Nothing here names the
// slot.
struct LastRelease {
  v1::RetrieveRequest request;
  v1::GetCollectionResponse collection;
};

// Two files in the state folder, replaced atomically. UNAVAILABLE: they cannot be written.
absl::Status SaveLastRelease(const std::string& state_folder, const LastRelease& last);
// NOT_FOUND: nothing was released yet. DATA_LOSS: a file is damaged.
absl::StatusOr<LastRelease> LoadLastRelease(const std::string& state_folder);

}  // namespace privatemail::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_LAST_RELEASE_H_
