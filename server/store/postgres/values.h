// SQL parameters and results in the binary formats of PostgreSQL.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_VALUES_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_VALUES_H_

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace privatemail::server::postgres {

// The values of $1, $2, ..., copied. Values never become part of SQL text.
class Parameters {
 public:
  Parameters& Int(int64_t value);                                // bigint
  Parameters& Double(double value);                              // double precision
  Parameters& Text(absl::string_view value);                     // text, without NUL
  Parameters& Bytes(absl::string_view value);                    // bytea
  Parameters& Ints(absl::Span<const int64_t> values);            // bigint[]
  Parameters& ByteArrays(absl::Span<const std::string> values);  // bytea[]

  const std::vector<Oid>& types() const { return types_; }
  const std::vector<std::string>& values() const { return values_; }

 private:
  Parameters& Add(Oid type, std::string value);

  std::vector<Oid> types_;
  std::vector<std::string> values_;
};

// Rows for COPY ... FROM STDIN (FORMAT binary), value after value in the order of the columns.
class CopyRows {
 public:
  explicit CopyRows(int columns) : columns_(columns) {}

  CopyRows& BeginRow();
  CopyRows& Int(int64_t value);              // bigint
  CopyRows& Int32(int32_t value);            // integer
  CopyRows& Bytes(absl::string_view value);  // bytea

  size_t size() const { return rows_.size(); }  // bytes so far
  // The rows since the last call, between header and trailer.
  std::string Take();

 private:
  int columns_;
  std::string rows_;
};

// Rows of a result. Columns count from 0. A NULL or a column of another type reads as 0 or empty.
class Result {
 public:
  explicit Result(PGresult* handle) : handle_(handle) {}

  // "COMMIT", "INSERT 0 3", ...
  absl::string_view command() const { return PQcmdStatus(handle_.get()); }
  int rows() const { return PQntuples(handle_.get()); }
  int64_t Int(int row, int column) const;  // smallint, integer or bigint
  double Double(int row, int column) const;
  // bytea or text; valid as long as the result.
  absl::string_view Bytes(int row, int column) const;

 private:
  struct Clear {
    void operator()(PGresult* handle) const { PQclear(handle); }
  };
  std::unique_ptr<PGresult, Clear> handle_;
};

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_VALUES_H_
