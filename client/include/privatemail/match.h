// An item that a private search found.
#ifndef PRIVATEMAIL_MATCH_H_
#define PRIVATEMAIL_MATCH_H_

#include <cstdint>
#include <optional>
#include <string>

namespace privatemail::client {

struct Match {
  std::string id;
  int32_t label = 0;  // or kNoLabel (common/items/item_checks.h)
  // encrypted, cells: between the vectors as the metric takes them. joint: in the coordinates of
  // the server's embedding, which compare within one answer only.
  double squared_distance = 0;
  std::string payload = {};  // JSON text; empty unless requested
  // encrypted: the cosine, or the inner product unless the metric is cosine.
  std::optional<double> similarity = {};
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_MATCH_H_
