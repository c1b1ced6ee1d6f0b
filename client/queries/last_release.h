// The last release and the last encrypted search, saved for `explain` and `resend`.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_LAST_RELEASE_H_
#define PRIVATEMAIL_CLIENT_QUERIES_LAST_RELEASE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/queries/scheme.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The bytes for the network and their public parameters. Saved before sending, so it does not say
// whether a server received it. Names neither the target's slot nor its cell.
struct LastRelease {
  Scheme scheme = Scheme::kJoint;
  v1::GetCollectionResponse collection;
  v1::RetrieveRequest request = {};     // of joint
  v1::RetrieveCellsRequest cells = {};  // of cells
  // The view that the server has of an encrypted search, as JSON; ciphertexts are not saved.
  std::string view = {};
};

// One file of mode 0600 for encrypted searches and one for all other schemes; the last of
// concurrent writers wins whole. UNAVAILABLE: it cannot be written.
absl::Status SaveLastRelease(const std::string& state_folder, const LastRelease& last);
// Called before anything is spent. INVALID_ARGUMENT: the file cannot be written.
absl::Status CheckLastReleaseCanBeSaved(const std::string& state_folder);
// The last one that can be sent again. NOT_FOUND: nothing was released yet. FAILED_PRECONDITION:
// all searches were under encryption, of which no ciphertexts are saved. DATA_LOSS: the file is
// damaged.
absl::StatusOr<LastRelease> LoadLastRelease(const std::string& state_folder);
// The last one of any scheme. NOT_FOUND and DATA_LOSS as above.
absl::StatusOr<LastRelease> LoadLastSearch(const std::string& state_folder);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_LAST_RELEASE_H_
