// What a server's answer must look like, whatever the target was.
#ifndef PRIVATEMAIL_ANSWER_CHECK_H_
#define PRIVATEMAIL_ANSWER_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The public part of a query: what the server was asked for in every slot.
struct Asked {
  int64_t k = 0;
  bool with_payloads = false;
  bool with_alignment = false;
};

// DATA_LOSS naming the slot and the field: a slot too many or too few; in any slot more than k
// matches, an id that is not UTF-8, a label that is none of the collection's, a distance that is
// not finite, a payload that was not asked for or that CheckPayload refuses; an alignment or server
// anchors that are mis-shaped, missing or not finite.
//
// It is not told the target's slot and looks at all slots alike. Otherwise a server could spoil the
// answer of one slot after the other and learn from a client that complains, retries or falls
// silent which one it had asked for.
absl::Status CheckAnswer(const PublicParameters& parameters, const Asked& asked,
                         const v1::RetrieveResponse& response);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_ANSWER_CHECK_H_
