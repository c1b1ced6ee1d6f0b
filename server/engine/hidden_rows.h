// Tombstones: rows of an embedding or cell index whose items have been deleted.
#ifndef PRIVATEMAIL_SERVER_ENGINE_HIDDEN_ROWS_H_
#define PRIVATEMAIL_SERVER_ENGINE_HIDDEN_ROWS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace privatemail::server {

// Immutable once shared.
struct HiddenRows {
  std::vector<bool> hidden;  // one a row
  int64_t count = 0;         // number of true values
};

// `former` (null: none) and the rows of these ids. Rows: Retriever or CellIndex.
template <typename Rows>
std::shared_ptr<const HiddenRows> AddHiddenRows(const Rows& rows, absl::Span<const std::string> ids,
                                                std::shared_ptr<const HiddenRows> former) {
  if (ids.empty()) return former;
  auto all =
      former == nullptr ? std::make_shared<HiddenRows>() : std::make_shared<HiddenRows>(*former);
  all->hidden.resize(static_cast<size_t>(rows.items()), false);
  for (const std::string& id : ids) {
    const std::optional<int64_t> row = rows.RowOf(id);
    if (!row || all->hidden[static_cast<size_t>(*row)]) continue;
    all->hidden[static_cast<size_t>(*row)] = true;
    ++all->count;
  }
  return all;
}

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_HIDDEN_ROWS_H_
