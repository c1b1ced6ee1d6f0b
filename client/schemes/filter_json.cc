#include "client/schemes/filter_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/wire/payload_filter_proto.h"

namespace privatemail::client {
namespace {

using nlohmann::json;

absl::Status Wrong(const std::string& field, const std::string& expected, const json& actual) {
  return FieldError(field, expected,
                    actual.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80));
}

absl::Status ReadValue(const std::string& field, const json& value, v1::PayloadValue* proto) {
  switch (value.type()) {
    case json::value_t::string:
      proto->set_string_value(value.get<std::string>());
      return absl::OkStatus();
    case json::value_t::number_integer:
      proto->set_integer_value(value.get<int64_t>());
      return absl::OkStatus();
    case json::value_t::number_unsigned:
      if (value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) break;
      proto->set_integer_value(value.get<int64_t>());
      return absl::OkStatus();
    case json::value_t::number_float:
      proto->set_number_value(value.get<double>());
      return absl::OkStatus();
    case json::value_t::boolean:
      proto->set_bool_value(value.get<bool>());
      return absl::OkStatus();
    case json::value_t::null:
      proto->set_null_value(true);
      return absl::OkStatus();
    default:
      break;
  }
  return Wrong(field, "a text, a number below 2^63, true, false or null", value);
}

absl::Status ReadFilter(const std::string& field, const json& filter, v1::PayloadFilter* proto);

absl::Status ReadList(const std::string& field, const json& list, v1::PayloadFilters* proto) {
  if (!list.is_array() || list.empty()) return Wrong(field, "a list of conditions", list);
  for (size_t i = 0; i < list.size(); ++i) {
    PM_RETURN_IF_ERROR(ReadFilter(absl::StrCat(field, "[", i, "]"), list[i], proto->add_filters()));
  }
  return absl::OkStatus();
}

absl::Status ReadRange(const std::string& field, const json& filter, v1::PayloadRange* proto) {
  for (const auto& [name, bound] : filter.items()) {
    if (name == "path") continue;
    if (!bound.is_number()) return Wrong(field + "." + name, "a number", bound);
    const auto value = bound.get<double>();
    if (name == "gt") proto->set_gt(value);
    if (name == "gte") proto->set_gte(value);
    if (name == "lt") proto->set_lt(value);
    if (name == "lte") proto->set_lte(value);
  }
  return absl::OkStatus();
}

// A condition on one path; `names` are the members of the object.
absl::Status ReadLeaf(const std::string& field, const json& filter,
                      const std::set<std::string>& names, v1::PayloadFilter* proto) {
  const json& path = filter.at("path");
  if (!path.is_string()) return Wrong(field + ".path", "a text", path);
  if (names == std::set<std::string>{"path", "equals"}) {
    proto->mutable_equals()->set_path(path.get<std::string>());
    return ReadValue(field + ".equals", filter.at("equals"),
                     proto->mutable_equals()->mutable_value());
  }
  if (names == std::set<std::string>{"path", "in"}) {
    const json& values = filter.at("in");
    if (!values.is_array()) return Wrong(field + ".in", "a list of values", values);
    proto->mutable_in()->set_path(path.get<std::string>());
    for (size_t i = 0; i < values.size(); ++i) {
      PM_RETURN_IF_ERROR(ReadValue(absl::StrCat(field, ".in[", i, "]"), values[i],
                                   proto->mutable_in()->add_values()));
    }
    return absl::OkStatus();
  }
  const std::set<std::string> known = {"path", "gt", "gte", "lt", "lte"};
  if (names.size() == 1 || !std::includes(known.begin(), known.end(), names.begin(), names.end())) {
    return Wrong(field, "a path with equals, in, or bounds (gt, gte, lt, lte)", filter);
  }
  proto->mutable_range()->set_path(path.get<std::string>());
  return ReadRange(field, filter, proto->mutable_range());
}

absl::Status ReadFilter(const std::string& field, const json& filter, v1::PayloadFilter* proto) {
  if (!filter.is_object()) return Wrong(field, "an object", filter);
  std::set<std::string> names;
  for (const auto& [name, value] : filter.items()) names.insert(name);
  if (names.count("path") > 0) return ReadLeaf(field, filter, names, proto);
  if (names == std::set<std::string>{"and"}) {
    return ReadList(field + ".and", filter.at("and"), proto->mutable_all_of());
  }
  if (names == std::set<std::string>{"or"}) {
    return ReadList(field + ".or", filter.at("or"), proto->mutable_any_of());
  }
  if (names == std::set<std::string>{"not"}) {
    return ReadFilter(field + ".not", filter.at("not"), proto->mutable_none_of()->add_filters());
  }
  return Wrong(field, kFilterForm, filter);
}

json ToJson(const v1::PayloadValue& value) {
  switch (value.kind_case()) {
    case v1::PayloadValue::kStringValue:
      return value.string_value();
    case v1::PayloadValue::kIntegerValue:
      return value.integer_value();
    case v1::PayloadValue::kNumberValue:
      return value.number_value();
    case v1::PayloadValue::kBoolValue:
      return value.bool_value();
    default:
      return nullptr;
  }
}

// 50 rather than 50.0.
json Bound(double bound) {
  constexpr double kExactIntegers = 9007199254740992;  // 2^53
  const bool whole = std::trunc(bound) == bound && std::abs(bound) < kExactIntegers;
  return whole ? json(static_cast<int64_t>(bound)) : json(bound);
}

json ToJson(const v1::PayloadRange& range) {
  json filter = {{"path", range.path()}};
  if (range.has_gt()) filter["gt"] = Bound(range.gt());
  if (range.has_gte()) filter["gte"] = Bound(range.gte());
  if (range.has_lt()) filter["lt"] = Bound(range.lt());
  if (range.has_lte()) filter["lte"] = Bound(range.lte());
  return filter;
}

json ToJson(const v1::PayloadFilters& filters) {
  json list = json::array();
  for (const v1::PayloadFilter& filter : filters.filters()) list.push_back(FilterToJson(filter));
  return list;
}

}  // namespace

json FilterToJson(const v1::PayloadFilter& filter) {
  switch (filter.condition_case()) {
    case v1::PayloadFilter::kEquals:
      return {{"path", filter.equals().path()}, {"equals", ToJson(filter.equals().value())}};
    case v1::PayloadFilter::kIn: {
      json values = json::array();
      for (const v1::PayloadValue& value : filter.in().values()) values.push_back(ToJson(value));
      return {{"path", filter.in().path()}, {"in", values}};
    }
    case v1::PayloadFilter::kRange:
      return ToJson(filter.range());
    case v1::PayloadFilter::kAllOf:
      return {{"and", ToJson(filter.all_of())}};
    case v1::PayloadFilter::kAnyOf:
      return {{"or", ToJson(filter.any_of())}};
    case v1::PayloadFilter::kNoneOf:
      if (filter.none_of().filters_size() == 1) {
        return {{"not", FilterToJson(filter.none_of().filters(0))}};
      }
      return {{"not", {{"or", ToJson(filter.none_of())}}}};
    default:
      return nullptr;
  }
}

absl::StatusOr<std::optional<v1::PayloadFilter>> FilterFromJson(const std::string& text) {
  if (text.empty()) return std::nullopt;
  // Checks the depth first: the JSON parser recurses.
  if (!CheckPayload(text).ok()) {
    return FieldError("filter", absl::StrCat("JSON of the form ", kFilterForm), "not JSON");
  }
  v1::PayloadFilter filter;
  PM_RETURN_IF_ERROR(ReadFilter("filter", json::parse(text), &filter));
  PM_RETURN_IF_ERROR(FromProto("filter", filter).status());
  return filter;
}

}  // namespace privatemail::client
