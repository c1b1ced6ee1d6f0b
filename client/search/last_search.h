// The last release and the last encrypted search, saved for Explain and Resend.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_LAST_SEARCH_H_
#define PRIVATEMAIL_CLIENT_SEARCH_LAST_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/schemes/encrypted/encrypted_search.h"
#include "privatemail/search_request.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The bytes for the network and their public parameters. Saved before sending, so it does not say
// whether a server received it. Names neither the target's slot nor its cell.
struct LastSearch {
  Scheme scheme = Scheme::kJoint;
  v1::GetCollectionResponse collection;
  // The serialised message. Of encrypted searches, whose ciphertexts are not saved, the server's
  // view as JSON.
  std::string message = {};
};

// One file of mode 0600 for encrypted searches and one for all other schemes; the last of
// concurrent writers wins whole. UNAVAILABLE: it cannot be written.
absl::Status SaveLastSearch(const std::string& state_folder, const LastSearch& last);
// The last search that can be sent again.
// collection: the search must have been for it, or FAILED_PRECONDITION; empty: any.
// NOT_FOUND: nothing was released yet. FAILED_PRECONDITION: all searches were encrypted, of which
// no ciphertexts are saved. DATA_LOSS: the file is damaged.
absl::StatusOr<LastSearch> LoadLastRelease(const std::string& state_folder,
                                           const std::string& collection = "");
// The last search of any scheme. Errors as above.
absl::StatusOr<LastSearch> LoadLastSearch(const std::string& state_folder,
                                          const std::string& collection = "");

// Saves the messages of one search as they are sent. Used by one thread.
class SearchRecord {
 public:
  SearchRecord(std::string state_folder, Scheme scheme, const v1::GetCollectionResponse& collection)
      : state_folder_(std::move(state_folder)), last_{.scheme = scheme, .collection = collection} {}

  // INVALID_ARGUMENT: the file cannot be written. Call it before anything is spent.
  absl::Status CheckWritable() const;
  // Call it before the message is sent. UNAVAILABLE: the file cannot be written.
  absl::Status SaveMessage(const google::protobuf::Message& message);
  // Adds the row table of an encrypted answer, once all messages are sent.
  absl::Status SaveAnswer(const SearchAnswer& answer);

  bool can_resend() const { return can_resend_; }                     // a release was saved
  const std::vector<std::string>& tables() const { return tables_; }  // digests, each once

 private:
  absl::Status SaveView();

  std::string state_folder_;
  LastSearch last_;
  bool can_resend_ = false;
  // The view of an encrypted search.
  v1::SearchEncryptedRequest first_;  // without queries and keys
  uint64_t messages_ = 0, queries_ = 0, bytes_ = 0;
  std::vector<std::string> tables_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_LAST_SEARCH_H_
