#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/evaluation/report/check_figure.h"
#include "client/evaluation/report/figure_json.h"
#include "client/evaluation/report/figure_marks.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

using nlohmann::json;

constexpr size_t kShownBytes = 80;

// Lists and objects are named only: writing them out descends into them.
std::string Shown(const json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return TruncateUtf8(value.dump(-1, ' ', true, json::error_handler_t::replace), kShownBytes);
}

absl::Status Wrong(absl::string_view field, absl::string_view expected, const json* actual) {
  return absl::InvalidArgumentError(absl::StrCat(field, " must be ", expected, ", but is ",
                                                 actual == nullptr ? "absent" : Shown(*actual)));
}

const json* Find(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

absl::Status CheckMembers(const std::string& field, const json& object,
                          std::initializer_list<const char*> known) {
  if (!object.is_object()) return Wrong(field, "an object", &object);
  for (const auto& [name, value] : object.items()) {
    bool is_known = false;
    for (const char* candidate : known) is_known |= name == candidate;
    if (!is_known) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, " has an unknown member \"", TruncateUtf8(Printable(name), kShownBytes), "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadText(const std::string& field, const json* value, std::string* text) {
  if (value == nullptr || !value->is_string()) return Wrong(field, "a text", value);
  *text = value->get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadNumber(const std::string& field, const json* value, double* number) {
  *number = std::numeric_limits<double>::quiet_NaN();
  if (value == nullptr) return absl::OkStatus();
  if (*value == kInfinity) {
    *number = std::numeric_limits<double>::infinity();
  } else if (*value == kMinusInfinity) {
    *number = -std::numeric_limits<double>::infinity();
  } else if (value->is_number()) {
    *number = value->get<double>();
  } else {
    return Wrong(field, "a number, \"Infinity\" or \"-Infinity\"", value);
  }
  return absl::OkStatus();
}

// Reads every element of a list, which names itself in errors.
template <typename Element, typename Read>
absl::Status ReadList(const std::string& field, const json* list, const Read& read,
                      std::vector<Element>* elements) {
  if (list == nullptr || !list->is_array()) return Wrong(field, "a list", list);
  for (size_t i = 0; i < list->size(); ++i) {
    elements->emplace_back();
    PM_RETURN_IF_ERROR(read(absl::StrCat(field, "[", i, "]"), (*list)[i], &elements->back()));
  }
  return absl::OkStatus();
}

absl::Status ReadElement(const std::string& field, const json& value, std::string* text) {
  return ReadText(field, &value, text);
}

absl::Status ReadAxis(const std::string& field, const json* value, FigureAxis* axis) {
  if (value == nullptr) return Wrong(field, "an object", value);
  PM_RETURN_IF_ERROR(
      CheckMembers(field, *value, {"label", "logarithmic", "low", "high", "categories"}));
  PM_RETURN_IF_ERROR(ReadText(field + ".label", Find(*value, "label"), &axis->label));
  const json* logarithmic = Find(*value, "logarithmic");
  if (logarithmic == nullptr || !logarithmic->is_boolean()) {
    return Wrong(field + ".logarithmic", "true or false", logarithmic);
  }
  axis->logarithmic = logarithmic->get<bool>();
  PM_RETURN_IF_ERROR(ReadNumber(field + ".low", Find(*value, "low"), &axis->low));
  PM_RETURN_IF_ERROR(ReadNumber(field + ".high", Find(*value, "high"), &axis->high));
  if (Find(*value, "categories") == nullptr) return absl::OkStatus();
  return ReadList(field + ".categories", Find(*value, "categories"), ReadElement,
                  &axis->categories);
}

absl::Status ReadGroup(const std::string& field, const json* value, int32_t* group) {
  if (value == nullptr) return absl::OkStatus();
  const json least = std::numeric_limits<int32_t>::min();
  const json most = std::numeric_limits<int32_t>::max();
  if (!value->is_number_integer() || *value < least || *value > most) {
    return Wrong(field, "a whole number of 32 bits", value);
  }
  *group = value->get<int32_t>();
  return absl::OkStatus();
}

absl::Status ReadPoint(const std::string& field, const json& value, FigurePoint* point) {
  PM_RETURN_IF_ERROR(CheckMembers(field, value, {"x", "y", "low", "high", "group"}));
  PM_RETURN_IF_ERROR(ReadNumber(field + ".x", Find(value, "x"), &point->x));
  PM_RETURN_IF_ERROR(ReadNumber(field + ".y", Find(value, "y"), &point->y));
  PM_RETURN_IF_ERROR(ReadNumber(field + ".low", Find(value, "low"), &point->low));
  PM_RETURN_IF_ERROR(ReadNumber(field + ".high", Find(value, "high"), &point->high));
  return ReadGroup(field + ".group", Find(value, "group"), &point->group);
}

absl::Status ReadMark(const std::string& field, const json* value, FigureSeries::Mark* mark) {
  for (size_t i = 0; value != nullptr && i < kMarkNames.size(); ++i) {
    if (*value != kMarkNames.at(i)) continue;
    *mark = static_cast<FigureSeries::Mark>(i);
    return absl::OkStatus();
  }
  return Wrong(field, "line, reference, bars or scatter", value);
}

absl::Status ReadSeries(const std::string& field, const json& value, FigureSeries* series) {
  PM_RETURN_IF_ERROR(CheckMembers(field, value, {"name", "mark", "points", "curve"}));
  PM_RETURN_IF_ERROR(ReadText(field + ".name", Find(value, "name"), &series->name));
  PM_RETURN_IF_ERROR(ReadMark(field + ".mark", Find(value, "mark"), &series->mark));
  PM_RETURN_IF_ERROR(
      ReadList(field + ".points", Find(value, "points"), ReadPoint, &series->points));
  if (Find(value, "curve") == nullptr) return absl::OkStatus();
  return ReadList(field + ".curve", Find(value, "curve"), ReadPoint, &series->curve);
}

absl::Status ReadPanel(const std::string& field, const json& value, FigurePanel* panel) {
  PM_RETURN_IF_ERROR(CheckMembers(field, value, {"title", "series"}));
  PM_RETURN_IF_ERROR(ReadText(field + ".title", Find(value, "title"), &panel->title));
  return ReadList(field + ".series", Find(value, "series"), ReadSeries, &panel->series);
}

absl::Status ReadClassNames(const std::string& field, const json* list,
                            std::map<int32_t, std::string>* names) {
  if (list == nullptr) return absl::OkStatus();
  using Name = std::pair<int32_t, std::string>;
  const auto read = [](const std::string& place, const json& value, Name* name) -> absl::Status {
    if (!value.is_array() || value.size() != 2) {
      return Wrong(place, "a list of a class and its name", &value);
    }
    PM_RETURN_IF_ERROR(ReadGroup(place + "[0]", &value[0], &name->first));
    return ReadText(place + "[1]", &value[1], &name->second);
  };
  std::vector<Name> read_names;
  PM_RETURN_IF_ERROR(ReadList(field, list, read, &read_names));
  names->insert(read_names.begin(), read_names.end());
  return absl::OkStatus();
}

absl::Status ReadFigure(const std::string& field, const json& value, Figure* figure) {
  PM_RETURN_IF_ERROR(
      CheckMembers(field, value, {"id", "title", "x", "y", "panels", "words", "class_names"}));
  PM_RETURN_IF_ERROR(ReadText(field + ".id", Find(value, "id"), &figure->id));
  PM_RETURN_IF_ERROR(CheckFigureId(field + ".id", figure->id));
  PM_RETURN_IF_ERROR(ReadText(field + ".title", Find(value, "title"), &figure->title));
  PM_RETURN_IF_ERROR(ReadAxis(field + ".x", Find(value, "x"), &figure->x));
  PM_RETURN_IF_ERROR(ReadAxis(field + ".y", Find(value, "y"), &figure->y));
  PM_RETURN_IF_ERROR(
      ReadList(field + ".panels", Find(value, "panels"), ReadPanel, &figure->panels));
  PM_RETURN_IF_ERROR(ReadList(field + ".words", Find(value, "words"), ReadElement, &figure->words));
  return ReadClassNames(field + ".class_names", Find(value, "class_names"), &figure->class_names);
}

absl::Status ReadFact(const std::string& field, const json& value,
                      std::pair<std::string, std::string>* fact) {
  if (!value.is_array() || value.size() != 2) return Wrong(field, "a list of two texts", &value);
  PM_RETURN_IF_ERROR(ReadText(field + "[0]", &value[0], &fact->first));
  return ReadText(field + "[1]", &value[1], &fact->second);
}

absl::StatusOr<json> Parsed(absl::string_view field, const std::string& text) {
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_discarded()) return value;
  return absl::InvalidArgumentError(absl::StrCat(field, " must be JSON, but is not"));
}

}  // namespace

absl::StatusOr<std::vector<Figure>> ReadFigures(const std::string& text) {
  PM_ASSIGN_OR_RETURN(const json list, Parsed("figures", text));
  std::vector<Figure> figures;
  PM_RETURN_IF_ERROR(ReadList("figures", &list, ReadFigure, &figures));
  return figures;
}

absl::StatusOr<Report> ReadResults(const std::string& text) {
  PM_ASSIGN_OR_RETURN(const json results, Parsed("results", text));
  PM_RETURN_IF_ERROR(
      CheckMembers("results", results, {"format", "title", "about", "settings", "figures"}));
  const json* format = Find(results, "format");
  if (format == nullptr || *format != kResultsFormat) {
    return Wrong("results.format", absl::StrCat(kResultsFormat), format);
  }
  Report report;
  PM_RETURN_IF_ERROR(ReadText("results.title", Find(results, "title"), &report.title));
  PM_RETURN_IF_ERROR(ReadList("results.about", Find(results, "about"), ReadFact, &report.about));
  PM_RETURN_IF_ERROR(
      ReadList("results.settings", Find(results, "settings"), ReadFact, &report.settings));
  PM_RETURN_IF_ERROR(
      ReadList("results.figures", Find(results, "figures"), ReadFigure, &report.figures));
  return report;
}

}  // namespace privatemail::client
