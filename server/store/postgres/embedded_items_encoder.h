// Rows of an embedding in the format of PostgreSQL's COPY.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_EMBEDDED_ITEMS_ENCODER_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_EMBEDDED_ITEMS_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/store/types.h"

namespace privatemail::server::postgres {

// Encodes rows in pieces of about a megabyte, each of which a statement takes.
class EmbeddedItemsEncoder {
 public:
  // key: of the embedding, which must outlive this.
  EmbeddedItemsEncoder(int64_t key, const Embedding& embedding)
      : key_(key), embedding_(embedding) {}

  // "" after the last row.
  std::string Next();

 private:
  const int64_t key_;
  const Embedding& embedding_;
  size_t done_ = 0;
};

// The statement that takes a piece.
extern const char kCopyEmbeddedItems[];

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_EMBEDDED_ITEMS_ENCODER_H_
