#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "common/wire/payload_filter_proto.h"
#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

v1::PayloadFilter Parse(const std::string& text) {
  v1::PayloadFilter proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

bool Matches(const std::string& filter, const std::string& payload) {
  const auto checked = FromProto("filter", Parse(filter));
  EXPECT_THAT(checked, IsOk()) << filter;
  return checked.ok() && checked->Matches(payload);
}

std::string Equals(const std::string& path, const std::string& value) {
  return absl::StrCat("equals { path: \"", path, "\" value { ", value, " } }");
}

TEST(PayloadFilter, EqualsComparesTypeAndValue) {
  const std::string payload = R"({"t":"x","i":3,"d":3.5,"b":true,"n":null,"big":9007199254740993})";
  for (const auto& [path, value, fits] : {std::tuple{"t", "string_value: \"x\"", true},
                                          {"t", "string_value: \"X\"", false},
                                          {"t", "string_value: \"\"", false},
                                          {"i", "integer_value: 3", true},
                                          {"i", "number_value: 3", true},
                                          {"i", "number_value: 3.5", false},
                                          {"i", "string_value: \"3\"", false},
                                          {"i", "bool_value: true", false},
                                          {"d", "number_value: 3.5", true},
                                          {"d", "integer_value: 3", false},
                                          {"b", "bool_value: true", true},
                                          {"b", "bool_value: false", false},
                                          {"b", "integer_value: 1", false},
                                          {"n", "null_value: true", true},
                                          {"none", "null_value: true", false},
                                          {"big", "integer_value: 9007199254740993", true},
                                          {"big", "integer_value: 9007199254740992", false}}) {
    EXPECT_EQ(Matches(Equals(path, value), payload), fits) << path << " " << value;
  }
}

TEST(PayloadFilter, HugeUnsignedIsNotNegative) {
  EXPECT_FALSE(Matches(Equals("a", "integer_value: -1"), R"({"a":18446744073709551615})"));
  EXPECT_TRUE(Matches(Equals("a", "integer_value: -1"), R"({"a":-1})"));
}

TEST(PayloadFilter, PathsDescendIntoObjects) {
  const std::string payload = R"({"a":{"b":{"c":1},"d":2}})";
  EXPECT_TRUE(Matches(Equals("a.b.c", "integer_value: 1"), payload));
  EXPECT_TRUE(Matches(Equals("a.d", "integer_value: 2"), payload));
  EXPECT_FALSE(Matches(Equals("a", "integer_value: 2"), payload));
  EXPECT_FALSE(Matches(Equals("a.b", "integer_value: 1"), payload));
  EXPECT_FALSE(Matches(Equals("a.d.e", "integer_value: 2"), payload));
  EXPECT_FALSE(Matches(Equals("d", "integer_value: 2"), payload));
}

TEST(PayloadFilter, ArrayMatchesIfAnyElementDoes) {
  const std::string payload = R"({"tags":["red","blue"],"sizes":[1,7,{"x":1},[9]],"none":[]})";
  EXPECT_TRUE(Matches(Equals("tags", "string_value: \"blue\""), payload));
  EXPECT_FALSE(Matches(Equals("tags", "string_value: \"green\""), payload));
  EXPECT_TRUE(Matches(R"(range { path: "sizes" gt: 5 lt: 8 })", payload));
  EXPECT_FALSE(Matches(R"(range { path: "sizes" gt: 8 })", payload));
  EXPECT_FALSE(Matches(Equals("none", "null_value: true"), payload));
}

TEST(PayloadFilter, RangeHasOpenAndClosedBoundsForNumbers) {
  for (const auto& [bounds, fits] : {std::pair{"gt: 3", false},
                                     {"gte: 3", true},
                                     {"lt: 3", false},
                                     {"lte: 3", true},
                                     {"gt: 2.9 lt: 3.1", true},
                                     {"gte: 2 lte: 2.5", false},
                                     {"gt: -inf", true},
                                     {"lt: -inf", false}}) {
    const std::string filter = absl::StrCat("range { path: \"a\" ", bounds, " }");
    EXPECT_EQ(Matches(filter, R"({"a":3})"), fits) << bounds;
    EXPECT_FALSE(Matches(filter, R"({"a":"3"})")) << bounds;
    EXPECT_FALSE(Matches(filter, R"({"a":true})")) << bounds;
    EXPECT_FALSE(Matches(filter, R"({"b":3})")) << bounds;
  }
}

TEST(PayloadFilter, CombinesConditions) {
  const std::string one = "filters { " + Equals("a", "integer_value: 1") + " }";
  const std::string two = "filters { " + Equals("b", "integer_value: 2") + " }";
  const std::string both = R"({"a":1,"b":2})";
  const std::string first = R"({"a":1,"b":3})";
  const std::string neither = R"({"a":2})";
  const auto join = [&](const std::string& how) { return how + " { " + one + " " + two + " }"; };
  for (const auto& [how, all, some, none] : {std::tuple{"all_of", true, false, false},
                                             {"any_of", true, true, false},
                                             {"none_of", false, false, true}}) {
    EXPECT_EQ(Matches(join(how), both), all) << how;
    EXPECT_EQ(Matches(join(how), first), some) << how;
    EXPECT_EQ(Matches(join(how), neither), none) << how;
  }
  EXPECT_TRUE(
      Matches("in { path: \"a\" values { integer_value: 5 } values { integer_value: 1 } }", both));
  EXPECT_FALSE(Matches("in { path: \"a\" values { integer_value: 5 } }", both));
}

TEST(PayloadFilter, MissingValueMatchesOnlyNegation) {
  for (const std::string payload : {"", "3", "[]", "null", "\"a\"", "{}"}) {
    EXPECT_FALSE(Matches(Equals("a", "null_value: true"), payload)) << payload;
    EXPECT_TRUE(Matches("none_of { filters { " + Equals("a", "null_value: true") + " } }", payload))
        << payload;
  }
}

TEST(PayloadFilter, InvalidPartIsNamed) {
  const std::string equals = Equals("a", "integer_value: 1");
  std::string deep = equals;
  for (int i = 0; i < kMaxFilterDepth; ++i) deep = "none_of { filters { " + deep + " } }";
  std::string wide = "any_of {";
  for (int i = 0; i < kMaxFilterConditions; ++i) wide += " filters { " + equals + " }";
  std::string many = "in { path: \"a\"";
  for (int i = 0; i <= kMaxFilterValues; ++i) many += " values { integer_value: 1 }";
  for (const auto& [text, message] :
       {std::pair<std::string, std::string>{"", "filter must be a condition"},
        {"all_of {}", "filter.all_of must hold at least one condition"},
        {"all_of { filters { " + equals + " } filters { } }",
         "filter.all_of[1] must be a condition"},
        {"any_of { filters { equals { path: \"a\" } } }",
         "filter.any_of[0].equals.value must be a text"},
        {Equals("", "integer_value: 1"), "filter.equals.path must be 1 to 256 bytes"},
        {Equals(std::string(257, 'a'), "integer_value: 1"), "but has 257 bytes"},
        {Equals("a..b", "integer_value: 1"), "must hold a name between dots"},
        {Equals(".a", "integer_value: 1"), "must hold a name between dots"},
        {Equals("a", "string_value: \"" + std::string(1025, 'x') + "\""), "has 1025"},
        {Equals("a", "number_value: nan"), "filter.equals.value must be finite, but is nan"},
        {Equals("a", "null_value: false"), "filter.equals.value.null_value must be true"},
        {"in { path: \"a\" }", "filter.in.values must be 1 to 1000, but are 0"},
        {many + " }", "filter.in.values must be 1 to 1000, but are 1001"},
        {"range { path: \"a\" }", "filter.range must have a bound"},
        {"range { path: \"a\" gt: nan }", "one is nan"},
        {deep, "must be nested at most 8 deep"},
        {wide + " }", "must be one of at most 64 conditions"}}) {
    EXPECT_THAT(FromProto("filter", Parse(text)), FailsWith(kInvalid, message))
        << text.substr(0, 60);
  }
}

TEST(PayloadFilter, PathsAreDistinct) {
  const auto filter =
      FromProto("filter", Parse("all_of { filters { " + Equals("a", "integer_value: 1") +
                                " } filters { " + Equals("b.c", "integer_value: 1") +
                                " } filters { " + Equals("a", "integer_value: 2") + " } }"));
  ASSERT_THAT(filter, IsOk());
  EXPECT_THAT(filter->paths(), ::testing::ElementsAre("a", "b.c"));
}

}  // namespace
}  // namespace privatemail::testing
