#include "client/evaluation/report/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

using Mark = FigureSeries::Mark;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Element {
  std::string name;
  std::string style_class;
  std::map<std::string, std::string> attributes;
  std::string text;
};

void Collect(const boost::property_tree::ptree& tree, std::vector<Element>* elements) {
  for (const auto& [name, child] : tree) {
    if (name == "<xmlattr>") continue;
    Element element = {name, child.get("<xmlattr>.class", ""), {}, child.data()};
    if (const auto attributes = child.get_child_optional("<xmlattr>")) {
      for (const auto& [key, value] : *attributes) element.attributes[key] = value.data();
    }
    elements->push_back(element);
    Collect(child, elements);
  }
}

std::vector<Element> Parsed(const std::string& svg) {
  std::istringstream stream(svg);
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(stream, tree);
  std::vector<Element> elements;
  Collect(tree, &elements);
  return elements;
}

// Elements whose class begins so.
std::vector<Element> WithClass(const std::vector<Element>& elements, const std::string& begin) {
  std::vector<Element> found;
  for (const Element& element : elements) {
    if (element.style_class.rfind(begin, 0) == 0) found.push_back(element);
  }
  return found;
}

std::vector<std::string> Texts(const std::vector<Element>& elements) {
  std::vector<std::string> texts;
  for (const Element& element : elements) {
    if (element.name == "text") texts.push_back(element.text);
  }
  return texts;
}

// All numbers of a path, without those of arcs.
std::vector<double> Numbers(const std::string& path) {
  const std::regex number("-?[0-9]+(\\.[0-9]+)?");
  std::vector<double> numbers;
  for (std::sregex_iterator at(path.begin(), path.end(), number), end; at != end; ++at) {
    numbers.push_back(std::stod(at->str()));
  }
  return numbers;
}

Figure OneSeries(Mark mark, const std::vector<FigurePoint>& points) {
  Figure figure;
  figure.id = "one";
  figure.title = "One";
  figure.panels = {{"", {{"series", mark, points}}}};
  return figure;
}

std::vector<Element> Drawn(const Figure& figure, double width = kPageWidth) {
  const absl::StatusOr<std::string> svg = InlineSvg(figure, width);
  EXPECT_THAT(svg, IsOk());
  return svg.ok() ? Parsed(*svg) : std::vector<Element>();
}

double TickPixel(const std::vector<Element>& elements, const std::string& text, bool upward) {
  for (const Element& element : elements) {
    if (element.text != text) continue;
    if (upward && element.style_class == "end small")
      return std::stod(element.attributes.at("y")) - 4;
    if (!upward && element.style_class == "middle small")
      return std::stod(element.attributes.at("x"));
  }
  ADD_FAILURE() << "no tick " << text;
  return NAN;
}

TEST(SvgPlot, APointLiesWhereTheTicksSayItsValueIs) {
  Figure figure = OneSeries(Mark::kLine, {{1, 0.2}, {10, 0.6}, {100, 1}});
  figure.x.logarithmic = true;
  for (const double width : {kPageWidth, kPhoneWidth}) {
    const std::vector<Element> elements = Drawn(figure, width);
    const std::vector<double> line =
        Numbers(WithClass(elements, "line").front().attributes.at("d"));
    ASSERT_EQ(line.size(), 6U);
    EXPECT_LT(TickPixel(elements, "1", false), TickPixel(elements, "100", false));
    EXPECT_GT(TickPixel(elements, "0.2", true), TickPixel(elements, "1.0", true));
    EXPECT_NEAR(line[0], TickPixel(elements, "1", false), 0.15);
    EXPECT_NEAR(line[1], TickPixel(elements, "0.2", true), 0.15);
    EXPECT_NEAR(line[2], TickPixel(elements, "10", false), 0.15);
    EXPECT_NEAR(line[3], TickPixel(elements, "0.6", true), 0.15);
    EXPECT_NEAR(line[4], TickPixel(elements, "100", false), 0.15);
    EXPECT_NEAR(line[5], TickPixel(elements, "1.0", true), 0.15);
  }
}

TEST(SvgPlot, ALineGoesThroughItsPointsInTheOrderOfX) {
  const auto path = [](const std::vector<FigurePoint>& points) {
    return WithClass(Drawn(OneSeries(Mark::kLine, points)), "line").front().attributes.at("d");
  };
  EXPECT_EQ(path({{3, 1}, {1, 2}, {2, 5}}), path({{1, 2}, {2, 5}, {3, 1}}));
}

TEST(SvgPlot, WhatIsNotFiniteLeavesAGap) {
  const Figure figure =
      OneSeries(Mark::kLine, {{1, 1}, {2, 2}, {3, NAN}, {4, kInfinite}, {NAN, 3}, {5, 2}, {6, 1}});
  ASSERT_OK_AND_ASSIGN(const std::string svg, InlineSvg(figure, kPageWidth));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  const std::string path = WithClass(Parsed(svg), "line").front().attributes.at("d");
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 2) << path;
  EXPECT_EQ(Numbers(path).size(), 8U) << path;
}

TEST(SvgPlot, ABandReachesFromLowToHighAndASinglePointHasAWhisker) {
  Figure figure = OneSeries(Mark::kLine, {{0, 0.5, 0.2, 0.8}, {1, 0.5, 0.4, 0.6}});
  figure.y.low = 0;
  figure.y.high = 1;
  std::vector<Element> elements = Drawn(figure);
  const std::vector<double> band = Numbers(WithClass(elements, "band").front().attributes.at("d"));
  ASSERT_EQ(band.size(), 8U);
  const double top = TickPixel(elements, "1.0", true);
  const double height = TickPixel(elements, "0.0", true) - top;
  EXPECT_NEAR(band[1], top + 0.2 * height, 0.15);
  EXPECT_NEAR(band[3], top + 0.4 * height, 0.15);
  EXPECT_NEAR(band[5], top + 0.6 * height, 0.15);
  EXPECT_NEAR(band[7], top + 0.8 * height, 0.15);
  elements = Drawn(OneSeries(Mark::kLine, {{0, 0.5, 0.2, 0.8}}));
  EXPECT_TRUE(WithClass(elements, "band").empty());
  EXPECT_EQ(WithClass(elements, "whisker").size(), 1U);
}

TEST(SvgPlot, AReferenceOfOnePointCrossesTheWholePlot) {
  Figure figure = OneSeries(Mark::kReference, {{0, 0.5}});
  figure.panels[0].series.push_back({"line", Mark::kLine, {{10, 0}, {20, 1}}});
  const std::vector<Element> elements = Drawn(figure);
  const Element reference = WithClass(elements, "reference").front();
  const std::vector<double> path = Numbers(reference.attributes.at("d"));
  EXPECT_NEAR(path[0], TickPixel(elements, "10", false), 0.15);
  EXPECT_NEAR(path[2], TickPixel(elements, "20", false), 0.15);
  EXPECT_EQ(path[1], path[3]);
  EXPECT_FALSE(reference.attributes.at("stroke-dasharray").empty());
}

TEST(SvgPlot, BarsBeginAtZeroAndEndAtTheirValue) {
  Figure figure = OneSeries(Mark::kBars, {{0, 0.4}, {1, 0.8}, {2, NAN}});
  figure.x.categories = {"first", "second", "third"};
  const std::vector<Element> elements = Drawn(figure);
  const std::vector<Element> bars = WithClass(elements, "bar");
  ASSERT_EQ(bars.size(), 2U);
  const double zero = TickPixel(elements, "0.0", false);
  EXPECT_NEAR(std::stod(bars[0].attributes.at("x")), zero, 0.15);
  const double end = zero + std::stod(bars[1].attributes.at("width"));
  EXPECT_NEAR(end, TickPixel(elements, "0.8", false), 0.2);
  EXPECT_NEAR(2 * std::stod(bars[0].attributes.at("width")),
              std::stod(bars[1].attributes.at("width")), 0.2);
  for (const std::string text : {"first", "second", "third", "0.400", "0.800"}) {
    EXPECT_THAT(Texts(elements), ::testing::Contains(text));
  }
}

// What of a series is seen without colours, wherever it is: weight, dashes, and the shape of its
// points if they are the next element.
std::string LooksOf(const std::vector<Element>& elements, size_t i) {
  const auto dash = elements[i].attributes.find("stroke-dasharray");
  std::string looks = dash == elements[i].attributes.end() ? "" : dash->second;
  if (elements[i].style_class.find("heavy") != std::string::npos) looks += "|heavy";
  const bool points = elements[i + 1].style_class.rfind("point", 0) == 0 ||
                      elements[i + 1].style_class.rfind("hollow", 0) == 0;
  if (!points) return looks;
  const std::string path = elements[i + 1].attributes.at("d");
  const std::string one = path.substr(0, path.find('z'));
  return looks + "|" + elements[i + 1].style_class.substr(0, 5) + "|" +
         std::regex_replace(one, std::regex("M[-0-9.]+ [-0-9.]+"), "M");
}

// Whoever sees no colours sees the dash or the shape of points.
TEST(SvgPlot, NoTwoSeriesDifferInColourAlone) {
  for (const auto& [mark, style_class, count] :
       {std::tuple{Mark::kLine, "line", 30u}, {Mark::kReference, "reference", 24u}}) {
    Figure figure = OneSeries(mark, {});
    figure.panels[0].series.clear();
    for (size_t i = 0; i < count; ++i) {
      figure.panels[0].series.push_back({std::to_string(i), mark, {{0, 0}, {1, 1}}});
    }
    const std::vector<Element> elements = Drawn(figure);
    std::set<std::string> looks;
    for (size_t i = 0; i + 1 < elements.size() && looks.size() < count; ++i) {
      if (elements[i].style_class.rfind(style_class, 0) != 0) continue;
      EXPECT_TRUE(looks.insert(LooksOf(elements, i)).second) << style_class << looks.size();
    }
    EXPECT_EQ(looks.size(), count);
  }
}

TEST(SvgPlot, ScatterDrawsAPathForEachGroup) {
  std::vector<FigurePoint> points;
  for (int i = 0; i < 300; ++i) {
    FigurePoint point;
    point.x = i;
    point.y = i % 17;
    point.group = i % 100;
    points.push_back(point);
  }
  const std::vector<Element> clouds = WithClass(Drawn(OneSeries(Mark::kScatter, points)), "cloud");
  ASSERT_EQ(clouds.size(), 100U);
  size_t drawn = 0;
  for (const Element& cloud : clouds) {
    const std::string& path = cloud.attributes.at("d");
    drawn += static_cast<size_t>(std::count(path.begin(), path.end(), 'M'));
  }
  EXPECT_EQ(drawn, 300U);
}

// Anchors, slots and the target's slot of one class: the same colour, told apart by size and hole.
TEST(SvgPlot, ScattersOfOnePanelLookDifferent) {
  Figure figure = OneSeries(Mark::kScatter, {});
  figure.panels[0].series.clear();
  for (const char* name : {"anchors", "slots", "the target's slot"}) {
    figure.panels[0].series.push_back({name, Mark::kScatter, {{0, 0}, {1, 1}}});
  }
  std::set<std::string> looks;
  for (const Element& cloud : WithClass(Drawn(figure), "cloud")) {
    EXPECT_THAT(cloud.style_class, ::testing::HasSubstr("c0"));
    looks.insert(cloud.style_class + cloud.attributes.at("d"));
  }
  EXPECT_EQ(looks.size(), 3u);
}

TEST(SvgPlot, DrawsFiguresWithoutValues) {
  Figure figure = OneSeries(Mark::kLine, {});
  EXPECT_THAT(Texts(Drawn(figure)), ::testing::Contains("no values"));
  figure.panels[0].series = {};
  EXPECT_THAT(Texts(Drawn(figure)), ::testing::Contains("no values"));
  figure.panels = {};
  EXPECT_EQ(WithClass(Drawn(figure), "plot").size(), 1U);
  for (const Mark mark : {Mark::kLine, Mark::kReference, Mark::kScatter}) {
    for (const double value : {0.0, -3.0, double{NAN}, kInfinite, 1e250}) {
      Drawn(OneSeries(mark, {{value, value}}));
    }
  }
}

TEST(SvgPlot, PointsFarBeyondAnAxisAreCutOff) {
  Figure figure = OneSeries(Mark::kLine, {{0, -1e250}, {1, 0.5}, {2, 1e250}});
  figure.y.low = 0;
  figure.y.high = 1e-200;
  ASSERT_OK_AND_ASSIGN(const std::string svg, InlineSvg(figure, kPageWidth));
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  for (const Element& line : WithClass(Parsed(svg), "line")) {
    for (const double number : Numbers(line.attributes.at("d"))) EXPECT_LT(std::abs(number), 1e5);
  }
}

TEST(SvgPlot, PanelsStandSideBySideAndWrapWhereTheyDoNotFit) {
  Figure figure = OneSeries(Mark::kLine, {{0, 0}, {1, 1}});
  figure.panels.resize(4, figure.panels[0]);
  for (size_t i = 0; i < 4; ++i) figure.panels[i].title = "panel " + std::to_string(i);
  const auto places = [&](double width) {
    std::set<std::string> left;
    std::set<std::string> top;
    for (const Element& title : WithClass(Drawn(figure, width), "strong")) {
      left.insert(title.attributes.at("x"));
      top.insert(title.attributes.at("y"));
    }
    return std::vector<size_t>{left.size(), top.size()};
  };
  EXPECT_THAT(places(kPageWidth), ElementsAre(2, 2));
  EXPECT_THAT(places(kPhoneWidth), ElementsAre(1, 4));
}

TEST(SvgPlot, TextIsTextWhateverItSays) {
  Figure figure = OneSeries(Mark::kLine, {{0, 1}});
  const std::string hostile = "</title><script>&\"'\x01\xff";
  figure.title = figure.x.label = figure.y.label = figure.panels[0].title = hostile;
  figure.panels[0].series[0].name = hostile;
  figure.words = {hostile};
  for (const absl::StatusOr<std::string>& svg :
       {StandAloneSvg(figure), InlineSvg(figure, kPhoneWidth)}) {
    ASSERT_THAT(svg, IsOk());
    EXPECT_EQ(svg->find("<script"), std::string::npos);
    EXPECT_EQ(svg->find('\x01'), std::string::npos);
    EXPECT_THAT(Parsed(*svg).at(1).text, HasSubstr("</title><script>&\"'\\x01\uFFFD"));
  }
}

}  // namespace
}  // namespace privatemail::client
