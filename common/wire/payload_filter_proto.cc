#include "common/wire/payload_filter_proto.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/items/payload_filter_node.h"

namespace privatemail {
namespace {

// Converts a message from a peer into a tree, enforcing the limits.
class FilterReader {
 public:
  using Node = PayloadFilter::Node;

  static absl::StatusOr<PayloadFilter> Read(absl::string_view field,
                                            const v1::PayloadFilter& proto) {
    FilterReader reader;
    auto root = std::make_shared<Node>();
    PM_RETURN_IF_ERROR(reader.ReadNode(std::string(field), proto, 1, root.get()));
    return PayloadFilter(std::move(root), std::move(reader.paths_));
  }

 private:
  static absl::Status Wrong(absl::string_view field, absl::string_view expected,
                            absl::string_view actual) {
    return InvalidField(field, absl::StrCat("must ", expected, ", but ", actual));
  }

  absl::Status ReadNode(const std::string& field, const v1::PayloadFilter& proto, int depth,
                        Node* node) {
    if (depth > kMaxFilterDepth) {
      return Wrong(field, absl::StrCat("be nested at most ", kMaxFilterDepth, " deep"),
                   "is deeper");
    }
    if (++conditions_ > kMaxFilterConditions) {
      return Wrong(field, absl::StrCat("be one of at most ", kMaxFilterConditions, " conditions"),
                   "there are more");
    }
    switch (proto.condition_case()) {
      case v1::PayloadFilter::kEquals:
        return ReadEquals(field + ".equals", proto.equals(), node);
      case v1::PayloadFilter::kIn:
        return ReadIn(field + ".in", proto.in(), node);
      case v1::PayloadFilter::kRange:
        return ReadRange(field + ".range", proto.range(), node);
      case v1::PayloadFilter::kAllOf:
        return ReadList(field + ".all_of", Node::Kind::kAll, proto.all_of(), depth, node);
      case v1::PayloadFilter::kAnyOf:
        return ReadList(field + ".any_of", Node::Kind::kAny, proto.any_of(), depth, node);
      case v1::PayloadFilter::kNoneOf:
        return ReadList(field + ".none_of", Node::Kind::kNone, proto.none_of(), depth, node);
      case v1::PayloadFilter::CONDITION_NOT_SET:
        break;
    }
    return Wrong(field, "be a condition: equals, in, range, all_of, any_of or none_of",
                 "it has no condition");
  }

  absl::Status ReadPath(const std::string& field, const std::string& path, Node* node) {
    if (path.empty() || path.size() > kMaxFilterPathBytes || !IsUtf8(path)) {
      return Wrong(field + ".path",
                   absl::StrCat("be 1 to ", kMaxFilterPathBytes, " bytes of UTF-8"),
                   absl::StrCat("has ", path.size(), " bytes"));
    }
    for (const absl::string_view name : absl::StrSplit(path, '.')) {
      if (name.empty()) return Wrong(field + ".path", "hold a name between dots", "one is empty");
    }
    const auto known = std::find(paths_.begin(), paths_.end(), path);
    node->path = static_cast<size_t>(known - paths_.begin());
    if (known == paths_.end()) paths_.push_back(path);
    return absl::OkStatus();
  }

  static absl::Status ReadValue(const std::string& field, const v1::PayloadValue& proto,
                                Node* node) {
    switch (proto.kind_case()) {
      case v1::PayloadValue::kStringValue:
        if (proto.string_value().size() > kMaxFilterTextBytes) {
          return Wrong(field, absl::StrCat("have at most ", kMaxFilterTextBytes, " bytes"),
                       absl::StrCat("has ", proto.string_value().size()));
        }
        node->values.emplace_back(proto.string_value());
        return absl::OkStatus();
      case v1::PayloadValue::kIntegerValue:
        node->values.emplace_back(int64_t{proto.integer_value()});
        return absl::OkStatus();
      case v1::PayloadValue::kNumberValue:
        if (!std::isfinite(proto.number_value())) {
          return Wrong(field, "be finite", absl::StrCat("is ", proto.number_value()));
        }
        node->values.emplace_back(proto.number_value());
        return absl::OkStatus();
      case v1::PayloadValue::kBoolValue:
        node->values.emplace_back(proto.bool_value());
        return absl::OkStatus();
      case v1::PayloadValue::kNullValue:
        if (!proto.null_value()) return Wrong(field + ".null_value", "be true", "is false");
        node->values.emplace_back(nullptr);
        return absl::OkStatus();
      case v1::PayloadValue::KIND_NOT_SET:
        break;
    }
    return Wrong(field, "be a text, a number, a bool or null", "is absent");
  }

  absl::Status ReadEquals(const std::string& field, const v1::PayloadEquals& proto, Node* node) {
    node->kind = Node::Kind::kOneOf;
    PM_RETURN_IF_ERROR(ReadPath(field, proto.path(), node));
    return ReadValue(field + ".value", proto.value(), node);
  }

  absl::Status ReadIn(const std::string& field, const v1::PayloadIn& proto, Node* node) {
    node->kind = Node::Kind::kOneOf;
    PM_RETURN_IF_ERROR(ReadPath(field, proto.path(), node));
    if (proto.values().empty() || proto.values_size() > kMaxFilterValues) {
      return Wrong(field + ".values", absl::StrCat("be 1 to ", kMaxFilterValues),
                   absl::StrCat("are ", proto.values_size()));
    }
    for (int i = 0; i < proto.values_size(); ++i) {
      PM_RETURN_IF_ERROR(ReadValue(absl::StrCat(field, ".values[", i, "]"), proto.values(i), node));
    }
    return absl::OkStatus();
  }

  absl::Status ReadRange(const std::string& field, const v1::PayloadRange& proto, Node* node) {
    node->kind = Node::Kind::kRange;
    PM_RETURN_IF_ERROR(ReadPath(field, proto.path(), node));
    if (proto.has_gt()) node->gt = proto.gt();
    if (proto.has_gte()) node->gte = proto.gte();
    if (proto.has_lt()) node->lt = proto.lt();
    if (proto.has_lte()) node->lte = proto.lte();
    if (!node->gt && !node->gte && !node->lt && !node->lte) {
      return Wrong(field, "have a bound: gt, gte, lt or lte", "has none");
    }
    for (const std::optional<double>& bound : {node->gt, node->gte, node->lt, node->lte}) {
      if (bound && std::isnan(*bound)) return Wrong(field, "have bounds that order", "one is nan");
    }
    return absl::OkStatus();
  }

  absl::Status ReadList(const std::string& field, Node::Kind kind, const v1::PayloadFilters& proto,
                        int depth, Node* node) {
    node->kind = kind;
    if (proto.filters().empty()) return Wrong(field, "hold at least one condition", "is empty");
    for (int i = 0; i < proto.filters_size(); ++i) {
      PM_RETURN_IF_ERROR(ReadNode(absl::StrCat(field, "[", i, "]"), proto.filters(i), depth + 1,
                                  &node->children.emplace_back()));
    }
    return absl::OkStatus();
  }

  int conditions_ = 0;
  std::vector<std::string> paths_;
};

}  // namespace

absl::StatusOr<PayloadFilter> FromProto(absl::string_view field, const v1::PayloadFilter& proto) {
  return FilterReader::Read(field, proto);
}

}  // namespace privatemail
