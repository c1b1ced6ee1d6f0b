// The protobuf messages of encrypted searches in the C library, which links no protobuf.
#ifndef PRIVATEMAIL_CLIENT_C_MESSAGES_H_
#define PRIVATEMAIL_CLIENT_C_MESSAGES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/schemes/encrypted/encrypted_answer.h"
#include "client/schemes/encrypted/encrypted_client.h"
#include "client/search/encrypted/row_tables.h"

namespace privatemail::client {

struct DescribedCollection {
  EncryptedCollection collection;
  std::string extractor;
};

// Parses a v1.GetCollectionResponse. The fingerprint is taken as the server says it: computing it
// needs all parameters, and a query sends it back to the same server.
// DATA_LOSS: it is malformed or describes another collection. FAILED_PRECONDITION: it does not
// offer this scheme.
absl::StatusOr<DescribedCollection> ParseCollection(absl::string_view message,
                                                    absl::string_view name);

// Parses a v1.SearchEncryptedResponse. DATA_LOSS: it is malformed.
absl::StatusOr<AnswerPart> ParseAnswerPart(absl::string_view message);

// A v1.SearchEncryptedRequest but for its evaluation keys, which come between the two halves.
struct RequestHalves {
  std::string before_keys, after_keys;

  std::string WithKeys(absl::string_view keys) const;  // none if empty
};
RequestHalves SerializeRequest(const EncryptedCollection& collection,
                               const EncryptedSession& session,
                               const std::vector<EncryptedQuery>& queries, const KnownBlocks& known,
                               bool with_payloads);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_C_MESSAGES_H_
