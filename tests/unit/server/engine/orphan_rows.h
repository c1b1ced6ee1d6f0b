// Orphan rows in a SQLite store.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_ORPHAN_ROWS_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_ORPHAN_ROWS_H_

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "common/sqlite/sqlite.h"

namespace privatemail::testing {

// The number of rows in all tables that belong to no collection, read without the store; -1: error.
inline int64_t CountOrphanRows(const std::string& folder) {
  constexpr char kCount[] =
      "SELECT count(*) FROM (SELECT collection FROM items UNION ALL SELECT collection FROM "
      "deletions UNION ALL SELECT collection FROM embeddings UNION ALL SELECT collection FROM "
      "cells "
      "UNION ALL SELECT (SELECT collection FROM embeddings WHERE key = embedding) FROM "
      "embedded_items UNION ALL SELECT (SELECT collection FROM cells c WHERE c.key = p.cells) FROM "
      "cell_parts p) WHERE coalesce(collection, 0) NOT IN (SELECT key FROM collections)";
  const auto file = sqlite::Database::OpenReadOnly(folder + "/privatemail.sqlite");
  if (!file.ok()) return -1;
  const auto count = (*file)->Query(kCount);
  int64_t rows = -1;
  return count.ok() && absl::SimpleAtoi(*count, &rows) ? rows : -1;
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_ORPHAN_ROWS_H_
