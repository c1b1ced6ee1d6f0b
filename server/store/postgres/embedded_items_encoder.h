// Rows of an embedding in the format of PostgreSQL's COPY.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_EMBEDDED_ITEMS_ENCODER_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_EMBEDDED_ITEMS_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "common/base/matrix.h"

namespace privatemail::server::postgres {

// Consecutive rows of an embedding; views of the caller's.
struct EmbeddedItems {
  int64_t first = 0;  // position in the embedding
  absl::Span<const std::string> ids;
  absl::Span<const int32_t> labels;
  absl::Span<const std::string> payloads;
  const Matrix* coordinates = nullptr;  // may have further rows
};

// Encodes rows in pieces of about a megabyte, each of which a statement takes.
class EmbeddedItemsEncoder {
 public:
  // key: PostgresStore::NewEmbeddingKey.
  EmbeddedItemsEncoder(int64_t key, const EmbeddedItems& items) : key_(key), items_(items) {}

  // "" after the last row.
  std::string Next();

 private:
  const int64_t key_;
  const EmbeddedItems items_;
  size_t done_ = 0;
};

// The statement that takes a piece.
extern const char kCopyEmbeddedItems[];

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_EMBEDDED_ITEMS_ENCODER_H_
