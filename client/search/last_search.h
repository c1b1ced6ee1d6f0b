// The last release and the last encrypted search, saved for Explain and Resend.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_LAST_SEARCH_H_
#define PRIVATEMAIL_CLIENT_SEARCH_LAST_SEARCH_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/search_request.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The bytes for the network and their public parameters. Saved before sending, so it does not say
// whether a server received it. Names neither the target's slot nor its cell.
struct LastSearch {
  Scheme scheme = Scheme::kJoint;
  v1::GetCollectionResponse collection;
  std::string message = {};  // of SearchRecord
};

// One file of mode 0600 for schemes whose messages can be sent again and one for the others; the
// last of concurrent writers wins whole. UNAVAILABLE: it cannot be written.
absl::Status SaveLastSearch(const std::string& state_folder, const LastSearch& last);
// INVALID_ARGUMENT: the file of the scheme cannot be written. Call it before anything is spent.
absl::Status CheckLastSearchWritable(const std::string& state_folder, Scheme scheme);
// The last search that can be sent again.
// collection: the search must have been for it, or FAILED_PRECONDITION; empty: any.
// NOT_FOUND: nothing was released yet. FAILED_PRECONDITION: all searches were encrypted, of which
// no ciphertexts are saved. DATA_LOSS: the file is damaged.
absl::StatusOr<LastSearch> LoadLastRelease(const std::string& state_folder,
                                           const std::string& collection = "");
// The last search of any scheme. Errors as above.
absl::StatusOr<LastSearch> LoadLastSearch(const std::string& state_folder,
                                          const std::string& collection = "");

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_LAST_SEARCH_H_
