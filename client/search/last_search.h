// The last release and the last encrypted search, saved for Explain and Resend.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_LAST_SEARCH_H_
#define PRIVATEMAIL_CLIENT_SEARCH_LAST_SEARCH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/files/private_file.h"
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

// Disk space for the search with a message of at most so many bytes. Take it before anything is
// spent. INVALID_ARGUMENT: the file of the scheme cannot be written. UNAVAILABLE: no space is left.
absl::StatusOr<std::unique_ptr<PrivateFile>> ReserveLastSearch(const std::string& state_folder,
                                                               const LastSearch& last,
                                                               int64_t message_bytes);
// One file of mode 0600 for schemes whose messages can be sent again and one for the others; the
// last of concurrent writers wins whole. UNAVAILABLE: it cannot be written.
absl::Status SaveLastSearch(const std::string& state_folder, const LastSearch& last,
                            std::unique_ptr<PrivateFile> reserved = nullptr);
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
