// A filter on the JSON payloads of items.
#ifndef PRIVATEMAIL_COMMON_ITEMS_PAYLOAD_FILTER_H_
#define PRIVATEMAIL_COMMON_ITEMS_PAYLOAD_FILTER_H_

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace privatemail {

inline constexpr size_t kMaxFilterPathBytes = 256;

// A validated v1.PayloadFilter (semantics: retrieval.proto; conversion: payload_filter_proto.h).
// Immutable, cheap to copy, thread-safe. The server sees filters in the clear.
class PayloadFilter {
 public:
  struct Node;

  // paths: distinct; conditions refer to them by index.
  PayloadFilter(std::shared_ptr<const Node> root, std::vector<std::string> paths)
      : root_(std::move(root)), paths_(std::move(paths)) {}

  const std::vector<std::string>& paths() const { return paths_; }

  // Parses the payload: about 1 us for a hundred bytes.
  bool Matches(const std::string& payload) const;

  // Matches without parsing: value_at(i) is the value of ValuesAt for paths()[i].
  bool Matches(absl::FunctionRef<const nlohmann::json&(size_t)> value_at) const;

 private:
  static bool Fits(const Node& node, absl::FunctionRef<const nlohmann::json&(size_t)> value_at);

  std::shared_ptr<const Node> root_;
  std::vector<std::string> paths_;
};

// The comparable value of a payload at each path: a text, number, bool or null, an array of these,
// or a discarded value if there is none.
std::vector<nlohmann::json> ValuesAt(absl::Span<const std::string> paths,
                                     const std::string& payload);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_ITEMS_PAYLOAD_FILTER_H_
