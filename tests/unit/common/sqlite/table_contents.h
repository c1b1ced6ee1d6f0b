// Reading of a test database with one table, t (a INTEGER PRIMARY KEY, b BLOB).
#ifndef PRIVATEMAIL_TESTS_UNIT_COMMON_SQLITE_TABLE_CONTENTS_H_
#define PRIVATEMAIL_TESTS_UNIT_COMMON_SQLITE_TABLE_CONTENTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/sqlite/sqlite.h"

namespace privatemail::sqlite {

inline absl::StatusOr<std::string> ReadAll(Database* database) {
  auto select = database->Prepare("SELECT a, b FROM t ORDER BY a");
  if (!select.ok()) return select.status();
  std::string all;
  while (true) {
    const absl::StatusOr<bool> more = select->Step();
    if (!more.ok()) return more.status();
    if (!*more) return all;
    absl::StrAppend(&all, select->Int(0), select->Bytes(1), "\n");
  }
}

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_TESTS_UNIT_COMMON_SQLITE_TABLE_CONTENTS_H_
