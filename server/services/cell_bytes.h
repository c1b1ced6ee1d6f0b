// Items that answer for cells, as they go over the wire.
#ifndef PRIVATEMAIL_SERVER_SERVICES_CELL_BYTES_H_
#define PRIVATEMAIL_SERVER_SERVICES_CELL_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/cells/cell_index.h"

namespace privatemail {

// A v1.RetrieveCellsResponse in the bytes that protobuf would write, one item after the other: what
// an index holds of it is copied, and nothing is made for it.
class CellBytes {
 public:
  // The index must outlive it.
  CellBytes(const CellIndex& index, bool with_payloads)
      : index_(index), with_payloads_(with_payloads) {}

  // row < index.items().
  void Add(int64_t row);

  uint64_t items() const { return items_; }
  // Of the fields so far.
  size_t size() const { return ids_.size() + labels_.size() + codes_.size() + payloads_.size(); }

  // The message of what was added, and begins the next.
  std::string Take();

 private:
  const CellIndex& index_;
  const bool with_payloads_;
  uint64_t items_ = 0;
  std::string ids_;  // fields, with their tags
  std::string labels_;
  std::string codes_;
  std::string payloads_;  // fields, with their tags
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_CELL_BYTES_H_
