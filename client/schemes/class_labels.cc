#include "client/schemes/class_labels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/suggestion.h"
#include "common/items/item_checks.h"

namespace privatemail::client {
namespace {

// "0 lemon, 1 lime, ... (24 in all)": the first classes, with names if there are any.
std::string SomeClasses(const PublicParameters& parameters) {
  constexpr size_t kMaxListed = 8;
  const auto& [labels, names] = std::pair(parameters.slot_labels, parameters.class_names);
  const size_t classes = std::max(labels.size(), names.size());
  std::vector<std::string> listed;
  for (size_t i = 0; i < std::min(classes, kMaxListed); ++i) {
    listed.push_back(absl::StrCat(labels.empty() ? static_cast<int32_t>(i) : labels[i]));
    if (!names.empty()) absl::StrAppend(&listed.back(), " ", Printable(names[i]));
  }
  return absl::StrCat(absl::StrJoin(listed, ", "),
                      classes > kMaxListed ? absl::StrCat(", ... (", classes, " in all)") : "");
}

// Whether the collection has a class or a name for the label.
bool IsKnown(int32_t label, const PublicParameters& parameters) {
  if (parameters.HasClasses()) return parameters.SlotOf(label).ok();
  return label >= 0 && static_cast<size_t>(label) < parameters.class_names.size();
}

// expected: "numbers" or "names".
absl::Status NotAClass(absl::string_view field, absl::string_view expected, size_t row,
                       const std::string& value, const PublicParameters& parameters) {
  return InvalidField(field,
                      absl::StrCat("must be ", expected, " of labels of the collection (",
                                   SomeClasses(parameters), "), but row ", row, " is ", value));
}

absl::Status CheckNames(absl::string_view field, const std::vector<std::string>& names) {
  for (size_t row = 0; row < names.size(); ++row) {
    const std::string& name = names[row];
    if (name.size() <= kMaxClassNameBytes && IsUtf8(name) && Printable(name) == name) continue;
    return InvalidField(field, absl::StrCat("must be at most ", kMaxClassNameBytes,
                                            " bytes of printable UTF-8, but row ", row, " is ",
                                            name.size(), " other bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NamedLabels> NumberClasses(absl::string_view field, const LabelColumn& column) {
  if (!column.numbers.empty()) return NamedLabels{column.numbers, {}};
  PM_RETURN_IF_ERROR(CheckNames(field, column.names));
  const auto missing = std::find(column.names.begin(), column.names.end(), "");
  if (missing != column.names.end()) {
    return InvalidField(field, absl::StrCat("must name the label of every anchor, but row ",
                                            missing - column.names.begin(), " is empty"));
  }
  NamedLabels named;
  const std::set<std::string> distinct(column.names.begin(), column.names.end());
  named.class_names.assign(distinct.begin(), distinct.end());
  std::map<absl::string_view, int32_t> numbers;
  for (const std::string& name : named.class_names) {
    numbers.emplace(name, static_cast<int32_t>(numbers.size()));
  }
  for (const std::string& name : column.names) named.labels.push_back(numbers.at(name));
  return named;
}

absl::StatusOr<NamedLabels> LabelsOfItems(absl::string_view field, const LabelColumn& column,
                                          const PublicParameters& parameters, bool has_items) {
  NamedLabels named{.labels = column.numbers, .class_names = parameters.class_names};
  const bool has_names = !parameters.class_names.empty();
  if (column.names.empty() || (!column.numbers.empty() && !has_names)) {
    // A number that is no class is refused row by row.
    if (parameters.HasClasses() || !has_names) return named;
    for (size_t row = 0; row < named.labels.size(); ++row) {
      if (named.labels[row] == kNoLabel || IsKnown(named.labels[row], parameters)) continue;
      return NotAClass(field, "numbers", row, absl::StrCat(named.labels[row]), parameters);
    }
    return named;
  }
  PM_RETURN_IF_ERROR(CheckNames(field, column.names));
  named.labels.assign(column.names.size(), kNoLabel);
  std::map<std::string, int32_t> numbers;
  for (size_t i = 0; i < named.class_names.size(); ++i) {
    numbers[named.class_names[i]] =
        parameters.HasClasses() ? parameters.slot_labels[i] : static_cast<int32_t>(i);
  }
  if (!parameters.HasClasses() && column.numbers.empty()) {
    if (has_items && !has_names) {
      const auto text =
          std::find_if(column.names.begin(), column.names.end(), [](const auto& name) {
            int32_t number = 0;
            return !name.empty() && !absl::SimpleAtoi(name, &number);
          });
      const auto row = (text == column.names.end() ? column.names.begin() : text);
      return InvalidField(
          field, absl::StrCat("must be numbers, since the collection has items but no names of "
                              "labels, but row ",
                              row - column.names.begin(), " is \"", Printable(*row),
                              "\": ingest named labels into a collection without items, which "
                              "then has their names"));
    }
    const std::set<std::string> distinct(column.names.begin(), column.names.end());
    for (const std::string& name : distinct) {
      if (name.empty() || numbers.contains(name)) continue;
      numbers.emplace(name, static_cast<int32_t>(named.class_names.size()));
      named.class_names.push_back(name);
    }
  }
  for (size_t row = 0; row < column.names.size(); ++row) {
    const std::string& name = column.names[row];
    if (const auto found = numbers.find(name); found != numbers.end()) {
      named.labels[row] = found->second;
    } else if (!name.empty()) {
      return WithNote(
          NotAClass(field, "names", row, absl::StrCat("\"", Printable(name), "\""), parameters),
          column.numbers.empty() ? Suggestion(name, parameters.class_names)
                                 : ": an array of integers (.npy) gives numbers of labels");
    }
  }
  return named;
}

absl::StatusOr<int32_t> LabelFrom(absl::string_view text, const PublicParameters& parameters) {
  std::optional<size_t> named;
  for (size_t i = 0; i < parameters.class_names.size(); ++i) {  // without a break: see the header
    if (parameters.class_names[i] == text) named = i;
  }
  const bool has_classes = parameters.HasClasses();
  if (named.has_value()) {
    return has_classes ? parameters.slot_labels[*named] : static_cast<int32_t>(*named);
  }
  int32_t label = 0;
  const bool is_number = absl::SimpleAtoi(text, &label);
  if (!has_classes && parameters.class_names.empty()) {
    if (is_number && label != kNoLabel) return label;
    return InvalidField("label",
                        "must be a whole number: the labels of this collection have no names");
  }
  if (is_number && IsKnown(label, parameters)) return label;
  // Without the text, which is private: messages are pasted into reports.
  return InvalidField("label",
                      absl::StrCat("must be the number or name of a label of the collection (",
                                   SomeClasses(parameters), ")"));
}

}  // namespace privatemail::client
