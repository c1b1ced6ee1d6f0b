// How many bytes an answer for cells is expected to take.
#ifndef PRIVATEMAIL_CLIENT_PLANNING_ANSWER_SIZE_H_
#define PRIVATEMAIL_CLIENT_PLANNING_ANSWER_SIZE_H_

#include <cstdint>

#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// Messages of RetrieveCells that hold `items` items without payloads, as protobuf writes them, in
// pieces of at least 64 KiB; TLS and HTTP/2 add some parts in a hundred. At most, but for
// id_bytes, the length of an id: ids are not published, and one is assumed. Requires a collection
// with a code.
int64_t AnswerBytes(const PublicParameters& parameters, int64_t items, int64_t id_bytes);

// The most items whose answer takes at most so many bytes; 0: not even one.
int64_t ItemsWithin(const PublicParameters& parameters, int64_t bytes, int64_t id_bytes);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PLANNING_ANSWER_SIZE_H_
