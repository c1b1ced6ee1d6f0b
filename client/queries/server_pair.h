// The two servers of a two-server search: whether they are two, and whether they were found wrong.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_SERVER_PAIR_H_
#define PRIVATEMAIL_CLIENT_QUERIES_SERVER_PAIR_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "privatemail/transport.h"
#include "privatemail/two_server_image.h"

namespace privatemail::client {

struct ServerPair {
  Halves<std::string> addresses;                     // as given
  Halves<std::optional<ServerIdentity>> identities;  // none without TLS
  std::string collection_uuid;
};

// FAILED_PRECONDITION naming what is equal: address, certificate or public key. Other names of one
// address are not noticed without TLS.
absl::Status CheckDifferentServers(const ServerPair& pair);

// INVALID_ARGUMENT: both have one access key, with which either operator could act as the user at
// the other.
absl::Status CheckDifferentKeys(const Transport& first, const Transport& second);

// An error of the second server: its message with --second-trust for --trust, and so on.
absl::Status WithSecondFlags(const absl::Status& status);

// A pair whose answers were wrong is recorded in a file of the state folder, and not used again
// until the user says so: a server learns one bit of the target from each failure. Records are of
// both servers' keys, and of both addresses, in any order, with the collection.
//
// FAILED_PRECONDITION naming the file and --trust-again: there is a record.
// INVALID_ARGUMENT: none could be written.
absl::Status CheckTrusted(const std::string& state_folder, const ServerPair& pair);
// INVALID_ARGUMENT, UNAVAILABLE: it cannot be written.
absl::Status RecordWrongAnswer(const std::string& state_folder, const ServerPair& pair,
                               absl::string_view reason);
// Removes the record, if there is one. UNAVAILABLE: it cannot be removed.
absl::Status TrustAgain(const std::string& state_folder, const ServerPair& pair);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_SERVER_PAIR_H_
