// The last release that was prepared to leave this machine, kept so that its owner can look at it
// and send it again.
#ifndef PRIVATEMAIL_CLIENT_CLI_LAST_RELEASE_H_
#define PRIVATEMAIL_CLIENT_CLI_LAST_RELEASE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/scheme.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client::cli {

// Exactly what was given to the network, and the public parameters it belongs to. Nothing here
// names the slot, or the cell that the target lies in, or says whether a server got it: it is kept
// before it is sent, and a sender whom no answer reaches cannot know.
struct LastRelease {
  Scheme scheme = Scheme::kJoint;
  v1::GetCollectionResponse collection;
  v1::RetrieveRequest request;     // empty where it was one for cells
  v1::RetrieveCellsRequest cells;  // empty otherwise
};

// One file in the state folder, for its owner alone, replaced atomically: of processes that save at
// once, the last wins whole. UNAVAILABLE: it cannot be written.
absl::Status SaveLastRelease(const std::string& state_folder, const LastRelease& last);
// Whether it could be, before anything is spent. INVALID_ARGUMENT: it could not.
absl::Status CheckLastReleaseCanBeSaved(const std::string& state_folder);
// NOT_FOUND: nothing was released yet. DATA_LOSS: the file is damaged.
absl::StatusOr<LastRelease> LoadLastRelease(const std::string& state_folder);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_LAST_RELEASE_H_
