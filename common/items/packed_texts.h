// Many short texts without the memory of a string each.
#ifndef PRIVATEMAIL_COMMON_ITEMS_PACKED_TEXTS_H_
#define PRIVATEMAIL_COMMON_ITEMS_PACKED_TEXTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace privatemail {

// PackedTexts holds texts one after another in one string. Not thread-safe for changes.
class PackedTexts {
 public:
  void Reserve(size_t texts, size_t bytes) {
    ends_.reserve(texts);
    bytes_.reserve(bytes);
  }
  void Add(absl::string_view text) {
    bytes_.append(text.data(), text.size());
    ends_.push_back(bytes_.size());
  }
  size_t size() const { return ends_.size(); }
  absl::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return absl::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  int64_t memory() const {
    return static_cast<int64_t>(bytes_.capacity() + ends_.capacity() * sizeof(size_t));
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_ITEMS_PACKED_TEXTS_H_
