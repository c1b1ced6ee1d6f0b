// Rows of an embedding that must not be found any more.
#ifndef PRIVATEMAIL_SERVER_ENGINE_HIDDEN_ROWS_H_
#define PRIVATEMAIL_SERVER_ENGINE_HIDDEN_ROWS_H_

#include <cstdint>
#include <vector>

namespace privatemail {

// Items that were deleted since the embedding was made. Immutable once shared.
struct HiddenRows {
  std::vector<bool> hidden;  // one a row of the embedding
  int64_t count = 0;         // how many are true
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_ENGINE_HIDDEN_ROWS_H_
