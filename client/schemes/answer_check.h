// Validation of a server's answer to a Retrieve request, independent of the target.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ANSWER_CHECK_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ANSWER_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/client_limits.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The bounds of the answer to a message. Public.
struct ExpectedAnswer {
  int64_t k = 0;
  bool with_payloads = false;
  bool with_alignment = false;
  size_t targets = 1;  // of the whole search
  int64_t max_memory = ClientLimits().max_memory;

  static ExpectedAnswer Of(const v1::RetrieveRequest& message, size_t targets,
                           const ClientLimits& limits) {
    return {message.k(), message.with_payloads(), message.with_alignment(), targets,
            limits.max_memory};
  }
};

// DATA_LOSS: the id of an item is longer than ids can be, or is not UTF-8. The time to show a match
// must not depend on a server that gives one item a long id.
absl::Status CheckReceivedId(const std::string& id);

// DATA_LOSS naming the slot and the field:
// - the number of slots differs from the number of classes;
// - in any slot: more than k matches, an id that is not UTF-8, a label that no class of
//   the collection has, a distance that is not finite, a payload that was not requested or that
//   CheckPayload refuses;
// - an alignment or server anchors that are missing, of a wrong shape or not finite.
// Privacy: all slots are checked alike and the target's slot is no argument, so errors and retries
// tell nothing about it to a server that corrupts one slot at a time.
absl::Status CheckAnswer(const PublicParameters& parameters, const ExpectedAnswer& expected,
                         const v1::RetrieveResponse& response);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ANSWER_CHECK_H_
