#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "client/evaluation/report/report.h"

namespace privatemail::client {
namespace {

constexpr const char* kInfinity = "Infinity";
constexpr const char* kMinusInfinity = "-Infinity";

// In the order of FigureSeries::Mark.
constexpr std::array<const char*, 4> kMarkNames = {"line", "reference", "bars", "scatter"};

const char* MarkName(FigureSeries::Mark mark) { return kMarkNames.at(static_cast<size_t>(mark)); }

using Json = nlohmann::ordered_json;

Json Number(double value) {
  if (std::isinf(value)) return value > 0 ? kInfinity : kMinusInfinity;
  return value;
}

void Set(Json* object, const char* name, double value) {
  if (!std::isnan(value)) (*object)[name] = Number(value);
}

Json ToJson(const FigureAxis& axis) {
  Json object = {{"label", axis.label}, {"logarithmic", axis.logarithmic}};
  Set(&object, "low", axis.low);
  Set(&object, "high", axis.high);
  if (!axis.categories.empty()) object["categories"] = axis.categories;
  return object;
}

Json ToJson(const FigurePoint& point) {
  Json object = Json::object();
  Set(&object, "x", point.x);
  Set(&object, "y", point.y);
  Set(&object, "low", point.low);
  Set(&object, "high", point.high);
  if (point.group != 0) object["group"] = point.group;
  return object;
}

Json ToJson(const FigureSeries& series) {
  Json points = Json::array();
  for (const FigurePoint& point : series.points) points.push_back(ToJson(point));
  Json object = {
      {"name", series.name}, {"mark", MarkName(series.mark)}, {"points", std::move(points)}};
  for (const FigurePoint& point : series.curve) object["curve"].push_back(ToJson(point));
  return object;
}

Json ToJson(const FigurePanel& panel) {
  Json series = Json::array();
  for (const FigureSeries& one : panel.series) series.push_back(ToJson(one));
  return {{"title", panel.title}, {"series", std::move(series)}};
}

Json ToJson(const std::vector<Figure>& figures) {
  Json list = Json::array();
  for (const Figure& figure : figures) {
    Json panels = Json::array();
    for (const FigurePanel& panel : figure.panels) panels.push_back(ToJson(panel));
    list.push_back({{"id", figure.id},
                    {"title", figure.title},
                    {"x", ToJson(figure.x)},
                    {"y", ToJson(figure.y)},
                    {"panels", std::move(panels)},
                    {"words", figure.words}});
    for (const auto& [group, name] : figure.class_names) {
      list.back()["class_names"].push_back(Json::array({group, name}));
    }
  }
  return list;
}

Json ToJson(const std::vector<std::pair<std::string, std::string>>& facts) {
  Json list = Json::array();
  for (const auto& [key, value] : facts) list.push_back(Json::array({key, value}));
  return list;
}

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string WriteResults(const Report& report) {
  return Text({{"format", kResultsFormat},
               {"title", report.title},
               {"about", ToJson(report.about)},
               {"settings", ToJson(report.settings)},
               {"figures", ToJson(report.figures)}});
}

}  // namespace privatemail::client
