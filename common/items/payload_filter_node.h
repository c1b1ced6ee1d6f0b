// The condition tree of a payload filter, for the code that builds and evaluates one.
#ifndef PRIVATEMAIL_COMMON_ITEMS_PAYLOAD_FILTER_NODE_H_
#define PRIVATEMAIL_COMMON_ITEMS_PAYLOAD_FILTER_NODE_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "common/items/payload_filter.h"

namespace privatemail {

struct PayloadFilter::Node {
  enum class Kind { kOneOf, kRange, kAll, kAny, kNone };
  Kind kind = Kind::kOneOf;
  size_t path = 0;                         // of kOneOf and kRange
  std::vector<nlohmann::json> values;      // of kOneOf
  std::optional<double> gt, gte, lt, lte;  // of kRange
  std::vector<Node> children;              // of the others
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_ITEMS_PAYLOAD_FILTER_NODE_H_
