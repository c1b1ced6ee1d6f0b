// Labels as a file or an array holds them: numbers, names or both.
#ifndef PRIVATEMAIL_COMMON_BASE_LABEL_COLUMN_H_
#define PRIVATEMAIL_COMMON_BASE_LABEL_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace privatemail {

// A column has numbers, unless one of its values is a name, and names, unless its values are
// numbers by their type. A text file of integers has both: names if the collection's labels have
// names, else numbers. A missing label is kNoLabel (common/items/item_checks.h) and an empty name.
struct LabelColumn {
  std::vector<int32_t> numbers = {};
  std::vector<std::string> names = {};

  size_t size() const { return names.empty() ? numbers.size() : names.size(); }
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_LABEL_COLUMN_H_
