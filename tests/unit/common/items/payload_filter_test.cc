#include "common/items/payload_filter.h"

#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

bool Matches(const std::string& filter, const std::string& payload) {
  const auto parsed = PayloadFilter::Parse(filter);
  EXPECT_THAT(parsed, IsOk()) << filter;
  return parsed.ok() && parsed->Matches(payload);
}

std::string Equals(const std::string& path, const std::string& value) {
  return absl::StrCat("{\"path\":\"", path, "\",\"equals\":", value, "}");
}

TEST(PayloadFilter, EqualsComparesTypeAndValue) {
  const std::string payload = R"({"t":"x","i":3,"d":3.5,"b":true,"n":null,"big":9007199254740993})";
  for (const auto& [path, value, fits] : {std::tuple{"t", "\"x\"", true},
                                          {"t", "\"X\"", false},
                                          {"t", "\"\"", false},
                                          {"i", "3", true},
                                          {"i", "3.0", true},
                                          {"i", "3.5", false},
                                          {"i", "\"3\"", false},
                                          {"i", "true", false},
                                          {"d", "3.5", true},
                                          {"d", "3", false},
                                          {"b", "true", true},
                                          {"b", "false", false},
                                          {"b", "1", false},
                                          {"n", "null", true},
                                          {"none", "null", false},
                                          {"big", "9007199254740993", true},
                                          {"big", "9007199254740992", false}}) {
    EXPECT_EQ(Matches(Equals(path, value), payload), fits) << path << " " << value;
  }
}

TEST(PayloadFilter, PathsDescendIntoObjectsAndAnyElementOfAnArrayMatches) {
  const std::string payload = R"({"a":{"b":{"c":1},"d":2},"tags":["red","blue"],"none":[],)"
                              R"("sizes":[1,7,{"x":1},[9]],"huge":18446744073709551615})";
  for (const auto& [path, value, fits] : {std::tuple{"a.b.c", "1", true},
                                          {"a.d", "2", true},
                                          {"a", "2", false},
                                          {"a.b", "1", false},
                                          {"a.d.e", "2", false},
                                          {"d", "2", false},
                                          {"huge", "-1", false},
                                          {"tags", "\"blue\"", true},
                                          {"tags", "\"green\"", false},
                                          {"none", "null", false}}) {
    EXPECT_EQ(Matches(Equals(path, value), payload), fits) << path << " " << value;
  }
  EXPECT_TRUE(Matches(R"({"path":"sizes","gt":5,"lt":8})", payload));
  EXPECT_FALSE(Matches(R"({"path":"sizes","gt":8})", payload));
}

TEST(PayloadFilter, RangeHasOpenAndClosedBoundsForNumbers) {
  for (const auto& [bounds, fits] : {std::pair{"\"gt\":3", false},
                                     {"\"gte\":3", true},
                                     {"\"lt\":3", false},
                                     {"\"lte\":3", true},
                                     {"\"gt\":2.9,\"lt\":3.1", true},
                                     {"\"gte\":2,\"lte\":2.5", false}}) {
    const std::string filter = absl::StrCat("{\"path\":\"a\",", bounds, "}");
    EXPECT_EQ(Matches(filter, R"({"a":3})"), fits) << bounds;
    for (const std::string payload : {R"({"a":"3"})", R"({"a":true})", R"({"b":3})"}) {
      EXPECT_FALSE(Matches(filter, payload)) << bounds << " " << payload;
    }
  }
}

TEST(PayloadFilter, CombinesConditions) {
  const std::string both = R"({"a":1,"b":2})";
  const std::string first = R"({"a":1,"b":3})";
  const std::string neither = R"({"a":2})";
  const std::string list = absl::StrCat("[", Equals("a", "1"), ",", Equals("b", "2"), "]");
  for (const auto& [filter, all, some, none] :
       {std::tuple{absl::StrCat("{\"and\":", list, "}"), true, false, false},
        {absl::StrCat("{\"or\":", list, "}"), true, true, false},
        {absl::StrCat("{\"not\":{\"or\":", list, "}}"), false, false, true}}) {
    EXPECT_EQ(Matches(filter, both), all) << filter;
    EXPECT_EQ(Matches(filter, first), some) << filter;
    EXPECT_EQ(Matches(filter, neither), none) << filter;
  }
  EXPECT_TRUE(Matches(R"({"path":"a","in":[5,1]})", both));
  EXPECT_FALSE(Matches(R"({"path":"a","in":[5]})", both));
}

TEST(PayloadFilter, MissingValueMatchesOnlyNegation) {
  for (const std::string payload : {"", "3", "[]", "null", "\"a\"", "{}"}) {
    EXPECT_FALSE(Matches(Equals("a", "null"), payload)) << payload;
    EXPECT_TRUE(Matches("{\"not\":" + Equals("a", "null") + "}", payload)) << payload;
  }
}

// Otherwise a client would be charged for a filter that the server refuses.
TEST(PayloadFilter, SizeAsSentIsLimited) {
  std::string list = R"({"path":"a","in":[1e9)";
  for (int i = 1; i < kMaxFilterValues; ++i) list += ",1e9";
  list += "]}";
  std::string filter = "{\"or\":[" + list;
  for (int i = 1; i < 8; ++i) filter += "," + list;
  filter += "]}";
  ASSERT_LT(filter.size(), kMaxFilterBytes);
  EXPECT_THAT(PayloadFilter::Parse(filter), FailsWith(kInvalid, "filter must be at most 65536"));
}

TEST(PayloadFilter, InvalidPartIsNamed) {
  const std::string equals = Equals("a", "1");
  std::string deep = equals;
  for (int i = 0; i < kMaxFilterDepth; ++i) deep = "{\"not\":" + deep + "}";
  std::string wide = "{\"or\":[" + equals;
  for (int i = 1; i < kMaxFilterConditions; ++i) wide += "," + equals;
  std::string many = R"({"path":"a","in":[1)";
  for (int i = 0; i < kMaxFilterValues; ++i) many += ",1";
  const std::string nested(kMaxFilterBytes / 2, '[');
  for (const auto& [text, message] :
       {std::pair<std::string, std::string>{"", "filter must be JSON of the form"},
        {"{", "filter must be JSON of the form"},
        {nested + std::string(nested.size(), ']'), "but is not JSON"},
        {std::string(kMaxFilterBytes + 1, ' '), "filter must be at most 65536 bytes"},
        {"{}", "filter must be {\"path\""},
        {"3", "filter must be an object, but is of type number"},
        {R"({"and":[]})", "filter.and must be a list of conditions, but is empty"},
        {R"({"and":[{"path":"a","path":"b","equals":1}]})",
         "filter has an object with two members \"path\""},
        {R"({"and":3})", "filter.and must be a list of conditions, but is of type number"},
        {"{\"and\":[" + equals + ",{}]}", "filter.and[1] must be {\"path\""},
        {R"({"or":[{"path":"a","equals":{}}]})", "filter.or[0].equals must be a text"},
        {R"({"path":3,"equals":1})", "filter.path must be a text"},
        {Equals("", "1"), "filter.path must be 1 to 256 bytes"},
        {Equals(std::string(257, 'a'), "1"), "but is 257 bytes"},
        {Equals("a..b", "1"), "filter.path must be names between dots"},
        {Equals(".a", "1"), "filter.path must be names between dots"},
        {Equals("a", "\"" + std::string(1025, 'x') + "\""), "but is 1025 bytes"},
        {Equals("a", "18446744073709551615"), "a number below 2^63"},
        {Equals("a", "1e999"), "but is not JSON"},
        {R"({"path":"a","in":3})", "filter.in must be a list of values"},
        {R"({"path":"a","in":[]})", "filter.in must be 1 to 1000 values, but is 0 values"},
        {R"({"path":"a","in":[1,{}]})", "filter.in[1] must be a text"},
        {many + "]}", "but is 1001 values"},
        {R"({"path":"a"})", "filter must be a path with equals, in, or bounds"},
        {R"({"path":"a"})", "but is a path alone"},
        {R"({"path":"a","gt":1,"equals":1})", "but is an object with the member \"equals\""},
        {R"({"path":"a","gt":1,"above":1})", "but is an object with the member \"above\""},
        {R"({"path":"year","get":2020})",
         "filter must be a path with equals, in, or bounds (gt, gte, lt, lte), but is an object "
         "with the member \"get\"; did you mean \"gt\" or \"gte\"?"},
        {R"({"year":2020})", "but is an object with the member \"year\""},
        {R"({"path":"a","gt":"1"})", "filter.gt must be a number, but is of type string"},
        {deep, "must be nested at most 8 deep"},
        {wide + "]}", "must be one of at most 64 conditions"}}) {
    EXPECT_THAT(PayloadFilter::Parse(text), FailsWith(kInvalid, message)) << text.substr(0, 60);
  }
}

TEST(PayloadFilter, PathsAreDistinct) {
  ASSERT_OK_AND_ASSIGN(
      const PayloadFilter filter,
      PayloadFilter::Parse(absl::StrCat("{\"and\":[", Equals("a", "1"), ",", Equals("b.c", "1"),
                                        ",", Equals("a", "2"), "]}")));
  EXPECT_THAT(filter.paths(), ::testing::ElementsAre("a", "b.c"));
  EXPECT_THAT(CheckFilterPaths(filter.paths()), IsOk());
  EXPECT_THAT(CheckFilterPaths({"a", "b.c", "a"}), FailsWith(kInvalid, "filter_paths"));
}

}  // namespace
}  // namespace privatemail::testing
