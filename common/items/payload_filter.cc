#include "common/items/payload_filter.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/suggestion.h"
#include "common/items/item_checks.h"

namespace privatemail {

using nlohmann::json;

namespace {

bool IsHugeUnsigned(const json& value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

// The values of one condition. A look-up takes about the same time for every value: a client's
// filter must not show in the time that it takes.
class ValueSet {
 public:
  // value: comparable, and no integer beyond 2^63.
  void Add(const json& value) {
    if (value.is_string()) {
      texts_.insert(value.get_ref<const std::string&>());
    } else if (value.is_number_integer()) {
      integers_.insert(value.get<int64_t>());
      of_integers_.insert(value.get<double>());
    } else if (value.is_number()) {
      floats_.insert(value.get<double>());
    } else {
      others_.insert(value.dump());  // true, false, null
    }
  }
  // Integers compare exactly, other numbers as doubles.
  bool Contains(const json& value) const {
    if (value.is_string()) return texts_.contains(value.get_ref<const std::string&>());
    if (IsHugeUnsigned(value)) return floats_.contains(value.get<double>());
    if (value.is_number_integer()) {
      return integers_.contains(value.get<int64_t>()) || floats_.contains(value.get<double>());
    }
    if (value.is_number()) {
      const auto number = value.get<double>();
      return floats_.contains(number) || of_integers_.contains(number);
    }
    return !others_.empty() && others_.contains(value.dump());
  }

 private:
  std::set<std::string> texts_, others_;
  std::set<int64_t> integers_;
  std::set<double> floats_, of_integers_;
};

// Whether the value, or any element if it is an array, passes. Tests all elements.
template <typename Test>
bool AnyOf(const json& value, const Test& test) {
  if (!value.is_array()) return !value.is_discarded() && test(value);
  return std::count_if(value.begin(), value.end(), test) > 0;
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

absl::Status Wrong(const std::string& field, absl::string_view expected, const json& actual) {
  return FieldError(field, expected, absl::StrCat("of type ", actual.type_name()));
}

absl::Status CheckPath(const std::string& field, const std::string& path) {
  if (path.empty() || path.size() > kMaxFilterPathBytes) {
    return FieldError(field, absl::StrCat("1 to ", kMaxFilterPathBytes, " bytes"),
                      absl::StrCat(path.size(), " bytes"));
  }
  const std::vector<absl::string_view> names = absl::StrSplit(path, '.');
  if (std::find(names.begin(), names.end(), "") == names.end()) return absl::OkStatus();
  return FieldError(field, "names between dots", "a path with an empty one");
}

// Parses JSON that CheckPayload accepts. Of members with the same name JSON libraries keep one or
// the other, so that client and server could apply different filters.
absl::StatusOr<json> ParseWithoutDuplicates(const std::string& text) {
  std::vector<std::set<std::string>> names;  // of the objects that are open
  std::string duplicate;
  bool has_duplicate = false;
  const auto note = [&](int /*depth*/, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(parsed).second) {
      if (!has_duplicate) duplicate = parsed;
      has_duplicate = true;
    }
    return true;
  };
  json parsed = json::parse(text, note);
  if (!has_duplicate) return parsed;
  return InvalidField("filter", absl::StrCat("has an object with two members \"", duplicate,
                                             "\": write the conditions as {\"and\":[...]}"));
}

std::string HasMember(const std::string& name) {
  static const std::vector<std::string> kMembers = {"path", "equals", "in",  "gt", "gte",
                                                    "lt",   "lte",    "and", "or", "not"};
  constexpr size_t kMaxBytes = 40;
  const bool is_known = std::find(kMembers.begin(), kMembers.end(), name) != kMembers.end();
  return absl::StrCat("an object with the member \"", Printable(TruncateUtf8(name, kMaxBytes)),
                      "\"", is_known ? "" : Suggestion(name, kMembers));
}

absl::Status CheckValue(const std::string& field, const json& value) {
  if (!IsComparable(value) || IsHugeUnsigned(value)) {
    return Wrong(field, "a text, a number below 2^63, true, false or null", value);
  }
  const size_t bytes = value.is_string() ? value.get_ref<const std::string&>().size() : 0;
  if (bytes <= kMaxFilterTextBytes) return absl::OkStatus();
  return FieldError(field, absl::StrCat("at most ", kMaxFilterTextBytes, " bytes"),
                    absl::StrCat(bytes, " bytes"));
}

}  // namespace

struct PayloadFilter::Node {
  enum class Kind { kOneOf, kRange, kAll, kAny, kNone };
  Kind kind = Kind::kOneOf;
  size_t path = 0;                         // of kOneOf and kRange
  ValueSet values;                         // of kOneOf
  std::optional<double> gt, gte, lt, lte;  // of kRange
  std::vector<Node> children;              // of the others
};

class PayloadFilter::Parser {
 public:
  absl::StatusOr<PayloadFilter> Read(const json& filter) {
    auto root = std::make_shared<Node>();
    PM_RETURN_IF_ERROR(ReadNode("filter", filter, 1, root.get()));
    PayloadFilter parsed;
    parsed.root_ = std::move(root);
    parsed.paths_ = std::move(paths_);
    parsed.conditions_ = conditions_;
    return parsed;
  }

 private:
  absl::Status ReadNode(const std::string& field, const json& filter, int depth, Node* node) {
    if (depth > kMaxFilterDepth) {
      return FieldError(field, absl::StrCat("nested at most ", kMaxFilterDepth, " deep"), "deeper");
    }
    if (++conditions_ > kMaxFilterConditions) {
      return FieldError(field, absl::StrCat("one of at most ", kMaxFilterConditions, " conditions"),
                        "one more");
    }
    if (!filter.is_object()) return Wrong(field, "an object", filter);
    if (filter.contains("path")) return ReadCondition(field, filter, node);
    if (filter.size() == 1) {
      const auto member = filter.begin();
      const std::string name = absl::StrCat(field, ".", member.key());
      if (member.key() == "not") {
        node->kind = Node::Kind::kNone;
        return ReadNode(name, *member, depth + 1, &node->children.emplace_back());
      }
      if (member.key() == "and" || member.key() == "or") {
        node->kind = member.key() == "and" ? Node::Kind::kAll : Node::Kind::kAny;
        return ReadList(name, *member, depth, node);
      }
    }
    return FieldError(
        field, kFilterForm,
        filter.size() == 1 ? HasMember(filter.begin().key()) : "an object with other members");
  }

  absl::Status ReadList(const std::string& field, const json& list, int depth, Node* node) {
    if (!list.is_array()) return Wrong(field, "a list of conditions", list);
    if (list.empty()) return FieldError(field, "a list of conditions", "empty");
    for (size_t i = 0; i < list.size(); ++i) {
      PM_RETURN_IF_ERROR(ReadNode(absl::StrCat(field, "[", i, "]"), list[i], depth + 1,
                                  &node->children.emplace_back()));
    }
    return absl::OkStatus();
  }

  absl::Status ReadCondition(const std::string& field, const json& filter, Node* node) {
    const json& path = filter.at("path");
    if (!path.is_string()) return Wrong(field + ".path", "a text", path);
    PM_RETURN_IF_ERROR(CheckPath(field + ".path", path));
    const auto known = std::find(paths_.begin(), paths_.end(), path.get<std::string>());
    node->path = static_cast<size_t>(known - paths_.begin());
    if (known == paths_.end()) paths_.push_back(path);
    if (filter.size() == 2 && filter.contains("equals")) {
      PM_RETURN_IF_ERROR(CheckValue(field + ".equals", filter.at("equals")));
      node->values.Add(filter.at("equals"));
      return absl::OkStatus();
    }
    if (filter.size() == 2 && filter.contains("in")) {
      return ReadValues(field + ".in", filter.at("in"), node);
    }
    node->kind = Node::Kind::kRange;
    std::set<std::string> names;
    for (const auto& [name, bound] : filter.items()) names.insert(name);
    for (const auto& [name, target] : {std::pair{"gt", &node->gt},
                                       {"gte", &node->gte},
                                       {"lt", &node->lt},
                                       {"lte", &node->lte}}) {
      if (names.erase(name) == 0) continue;
      const json& bound = filter.at(name);
      if (!bound.is_number()) return Wrong(absl::StrCat(field, ".", name), "a number", bound);
      *target = bound.get<double>();
    }
    names.erase("path");
    if (names.empty() && filter.size() > 1) return absl::OkStatus();
    return FieldError(field, "a path with equals, in, or bounds (gt, gte, lt, lte)",
                      names.empty() ? "a path alone" : HasMember(*names.begin()));
  }

  static absl::Status ReadValues(const std::string& field, const json& values, Node* node) {
    if (!values.is_array()) return Wrong(field, "a list of values", values);
    if (values.empty() || values.size() > kMaxFilterValues) {
      return FieldError(field, absl::StrCat("1 to ", kMaxFilterValues, " values"),
                        absl::StrCat(values.size(), " values"));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      PM_RETURN_IF_ERROR(CheckValue(absl::StrCat(field, "[", i, "]"), values[i]));
      node->values.Add(values[i]);
    }
    return absl::OkStatus();
  }

  int conditions_ = 0;
  std::vector<std::string> paths_;
};

std::string NamesUnknownPath(absl::string_view path) {
  return absl::StrCat("names the path \"", path, "\", which no item that can be found has");
}

absl::Status CheckFilterPaths(absl::Span<const std::string> paths) {
  if (paths.size() > kMaxFilterConditions) {
    return FieldError("filter_paths", absl::StrCat("at most ", kMaxFilterConditions, " paths"),
                      absl::StrCat(paths.size()));
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    PM_RETURN_IF_ERROR(CheckPath("filter_paths", paths[i]));
    if (std::find(paths.begin(), paths.begin() + i, paths[i]) != paths.begin() + i) {
      return FieldError("filter_paths", "different paths", "one twice");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PayloadFilter> PayloadFilter::Parse(const std::string& text) {
  const auto check_size = [](size_t bytes) {
    return bytes <= kMaxFilterBytes
               ? absl::OkStatus()
               : FieldError("filter", absl::StrCat("at most ", kMaxFilterBytes, " bytes"),
                            absl::StrCat(bytes, " bytes"));
  };
  PM_RETURN_IF_ERROR(check_size(text.size()));
  // Checks the depth first: the JSON parser recurses.
  if (text.empty() || !CheckPayload(text).ok()) {
    return FieldError("filter", absl::StrCat("JSON of the form ", kFilterForm), "not JSON");
  }
  PM_ASSIGN_OR_RETURN(const json filter, ParseWithoutDuplicates(text));
  // A client sends the text in this form, in which 1e9 takes three times the bytes.
  PM_RETURN_IF_ERROR(check_size(filter.dump().size()));
  return Parser().Read(filter);
}

bool PayloadFilter::Fits(const Node& node, absl::FunctionRef<const json&(size_t)> value_at) {
  // Evaluates all children, as AnyOf all elements.
  const auto fitting = [&] {
    return std::count_if(node.children.begin(), node.children.end(),
                         [&](const Node& child) { return Fits(child, value_at); });
  };
  switch (node.kind) {
    case Node::Kind::kOneOf:
      return AnyOf(value_at(node.path),
                   [&](const json& value) { return node.values.Contains(value); });
    case Node::Kind::kRange:
      return AnyOf(value_at(node.path), [&](const json& value) {
        if (!value.is_number()) return false;
        const auto number = value.get<double>();
        return (!node.gt || number > *node.gt) && (!node.gte || number >= *node.gte) &&
               (!node.lt || number < *node.lt) && (!node.lte || number <= *node.lte);
      });
    case Node::Kind::kAll:
      return fitting() == std::ssize(node.children);
    case Node::Kind::kAny:
      return fitting() > 0;
    case Node::Kind::kNone:
      return fitting() == 0;
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
