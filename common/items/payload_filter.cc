#include "common/items/payload_filter.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/items/payload_filter_node.h"

namespace privatemail {

using nlohmann::json;

namespace {

bool IsHugeUnsigned(const json& value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

// The JSON library compares 2^64 - 1 equal to -1.
bool Equal(const json& one, const json& other) {
  if (IsHugeUnsigned(one) != IsHugeUnsigned(other) && one.is_number_integer() &&
      other.is_number_integer()) {
    return false;
  }
  return one == other;
}

// Whether the value, or any element if it is an array, passes.
template <typename Test>
bool AnyOf(const json& value, const Test& test) {
  if (!value.is_array()) return !value.is_discarded() && test(value);
  return std::any_of(value.begin(), value.end(), test);
}

bool IsComparable(const json& value) { return !value.is_structured() && !value.is_discarded(); }

json ValueAt(const json& payload, absl::string_view path) {
  const json* value = &payload;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (!value->is_object()) return json(json::value_t::discarded);
    const auto member = value->find(std::string(name));
    if (member == value->end()) return json(json::value_t::discarded);
    value = &*member;
  }
  if (IsComparable(*value)) return *value;
  json comparable = json::array();
  if (!value->is_array()) return json(json::value_t::discarded);
  std::copy_if(value->begin(), value->end(), std::back_inserter(comparable), IsComparable);
  return comparable;
}

}  // namespace

bool PayloadFilter::Fits(const Node& node, absl::FunctionRef<const json&(size_t)> value_at) {
  const auto fits = [&](const Node& child) { return Fits(child, value_at); };
  switch (node.kind) {
    case Node::Kind::kOneOf:
      return AnyOf(value_at(node.path), [&](const json& value) {
        return std::any_of(node.values.begin(), node.values.end(),
                           [&](const json& wanted) { return Equal(value, wanted); });
      });
    case Node::Kind::kRange:
      return AnyOf(value_at(node.path), [&](const json& value) {
        if (!value.is_number()) return false;
        const auto number = value.get<double>();
        return (!node.gt || number > *node.gt) && (!node.gte || number >= *node.gte) &&
               (!node.lt || number < *node.lt) && (!node.lte || number <= *node.lte);
      });
    case Node::Kind::kAll:
      return std::all_of(node.children.begin(), node.children.end(), fits);
    case Node::Kind::kAny:
      return std::any_of(node.children.begin(), node.children.end(), fits);
    case Node::Kind::kNone:
      return std::none_of(node.children.begin(), node.children.end(), fits);
  }
  return false;
}

bool PayloadFilter::Matches(absl::FunctionRef<const json&(size_t)> value_at) const {
  return Fits(*root_, value_at);
}

bool PayloadFilter::Matches(const std::string& payload) const {
  const std::vector<json> values = ValuesAt(paths_, payload);
  return Matches([&](size_t path) -> const json& { return values[path]; });
}

std::vector<json> ValuesAt(absl::Span<const std::string> paths, const std::string& payload) {
  const json parsed = json::parse(payload, nullptr, /*allow_exceptions=*/false);
  std::vector<json> values;
  values.reserve(paths.size());
  for (const std::string& path : paths) values.push_back(ValueAt(parsed, path));
  return values;
}

}  // namespace privatemail
