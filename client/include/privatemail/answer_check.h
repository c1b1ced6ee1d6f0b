// Validation of a server's answer to a Retrieve request, independent of the target.
#ifndef PRIVATEMAIL_ANSWER_CHECK_H_
#define PRIVATEMAIL_ANSWER_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The options of the request that bound its answer. Public.
struct ExpectedAnswer {
  int64_t k = 0;
  bool with_payloads = false;
  bool with_alignment = false;
};

// DATA_LOSS naming the slot and the field:
// - the number of slots differs from the number of classes;
// - in any slot: more than k matches, an id that is not UTF-8, a label that is none of the
//   collection's, a distance that is not finite, a payload that was not requested or that
//   CheckPayload refuses;
// - an alignment or server anchors that are mis-shaped, missing or not finite.
//
// Checks all slots alike and does not take the target's slot: a server that corrupts one slot at a
// time must not learn from the client's complaints, retries or silence which slot it reads.
absl::Status CheckAnswer(const PublicParameters& parameters, const ExpectedAnswer& expected,
                         const v1::RetrieveResponse& response);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_ANSWER_CHECK_H_
