// A filter on the JSON payloads of items.
#ifndef PRIVATEMAIL_COMMON_ITEMS_PAYLOAD_FILTER_H_
#define PRIVATEMAIL_COMMON_ITEMS_PAYLOAD_FILTER_H_

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace privatemail {

inline constexpr size_t kMaxFilterBytes = 64 * 1024;  // parsed they take about 2 MB at most
inline constexpr size_t kMaxFilterPathBytes = 256;
inline constexpr int kMaxFilterDepth = 8;
inline constexpr int kMaxFilterConditions = 64;
inline constexpr int kMaxFilterValues = 1000;        // of one condition
inline constexpr size_t kMaxFilterTextBytes = 1024;  // of a value

// The form of a filter's JSON text, for --help and messages. VALUE is a text, a number, true, false
// or null. A path names members from the outside in; of an array one matching element suffices, and
// a path without a value matches nothing.
inline constexpr char kFilterForm[] =
    "{\"path\":\"a.b\",\"equals\":VALUE}, {\"path\":P,\"in\":[VALUE,...]}, "
    "{\"path\":P,\"gte\":1,\"lt\":9} (also gt, lte), {\"and\":[...]}, {\"or\":[...]}, "
    "{\"not\":{...}}";

// INVALID_ARGUMENT: more paths than a filter may have, or one that is malformed.
absl::Status CheckFilterPaths(absl::Span<const std::string> paths);

// "names the path \"a.b\", which no item that can be found has", a FieldProblem of a filter.
std::string NamesUnknownPath(absl::string_view path);

// A parsed filter. Immutable, cheap to copy, thread-safe. A server that is sent one sees it in the
// clear.
class PayloadFilter {
 public:
  // text: of a peer or a user. INVALID_ARGUMENT naming the wrong part, "filter.and[1].gte must be a
  // number, but is of type string", the limit or a member that occurs twice; values are not
  // repeated. A client calls it before it spends a budget.
  static absl::StatusOr<PayloadFilter> Parse(const std::string& text);

  const std::vector<std::string>& paths() const { return paths_; }  // each once
  int conditions() const { return conditions_; }                    // with the operators

  // Parses the payload: about 1 us for a hundred bytes, and less for each condition. The time does
  // not depend on what the filter says.
  bool Matches(const std::string& payload) const;

  // Matches without parsing: value_at(i) is the value of ValuesAt for paths()[i].
  bool Matches(absl::FunctionRef<const nlohmann::json&(size_t)> value_at) const;

 private:
  struct Node;
  class Parser;

  PayloadFilter() = default;

  static bool Fits(const Node& node, absl::FunctionRef<const nlohmann::json&(size_t)> value_at);

  std::shared_ptr<const Node> root_;
  std::vector<std::string> paths_;
  int conditions_ = 0;
};

// The comparable value of a payload at each path: a text, number, bool or null, an array of these,
// or a discarded value if there is none.
std::vector<nlohmann::json> ValuesAt(absl::Span<const std::string> paths,
                                     const std::string& payload);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_ITEMS_PAYLOAD_FILTER_H_
