// Filters on the JSON payloads of items.
#ifndef PRIVATEMAIL_COMMON_WIRE_PAYLOAD_FILTER_H_
#define PRIVATEMAIL_COMMON_WIRE_PAYLOAD_FILTER_H_

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

inline constexpr int kMaxFilterDepth = 8;
inline constexpr int kMaxFilterConditions = 64;
inline constexpr int kMaxFilterValues = 1000;
inline constexpr size_t kMaxFilterTextBytes = 1024;  // of a value
inline constexpr size_t kMaxFilterPathBytes = 256;

// A validated v1.PayloadFilter (semantics: retrieval.proto). Stores and engine evaluate it; the
// client validates with it before it spends a budget. Immutable, cheap to copy, thread-safe. The
// server sees filters in clear.
class PayloadFilter {
 public:
  // INVALID_ARGUMENT naming the invalid part: "filter.all_of[1].range.path must be ...". Values are
  // not repeated.
  static absl::StatusOr<PayloadFilter> FromProto(absl::string_view field,
                                                 const v1::PayloadFilter& proto);

  // The distinct paths that the filter reads.
  const std::vector<std::string>& paths() const { return paths_; }

  // Parses the payload: about 1 us for a hundred bytes.
  bool Matches(const std::string& payload) const;

  // Matches without parsing: value_at(i) is the value of ValuesAt for paths()[i].
  bool Matches(absl::FunctionRef<const nlohmann::json&(size_t)> value_at) const;

 private:
  struct Node;
  friend class FilterReader;
  PayloadFilter(std::shared_ptr<const Node> root, std::vector<std::string> paths)
      : root_(std::move(root)), paths_(std::move(paths)) {}
  static bool Fits(const Node& node, absl::FunctionRef<const nlohmann::json&(size_t)> value_at);

  std::shared_ptr<const Node> root_;
  std::vector<std::string> paths_;
};

// The comparable value of a payload at each path: a text, number, bool or null, an array of these,
// or a discarded value if there is none.
std::vector<nlohmann::json> ValuesAt(absl::Span<const std::string> paths,
                                     const std::string& payload);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_PAYLOAD_FILTER_H_
