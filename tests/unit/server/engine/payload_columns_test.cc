#include "server/engine/payload_columns.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

PayloadFilter Filter(const std::string& text) { return *PayloadFilter::Parse(text); }

PayloadFilter Below(const std::string& path, int bound) {
  return Filter(absl::StrCat("{\"path\":\"", path, "\",\"lt\":", bound, "}"));
}

// {"n": row, "p0": row, "p1": row, ...}
std::vector<std::string> Payloads(int rows, int paths) {
  std::vector<std::string> payloads;
  for (int row = 0; row < rows; ++row) {
    std::string text = absl::StrCat("{\"n\":", row);
    for (int path = 0; path < paths; ++path) absl::StrAppend(&text, ",\"p", path, "\":", row);
    payloads.push_back(text + "}");
  }
  return payloads;
}

TEST(PayloadColumns, FindsRowsThatMatchFilter) {
  std::vector<std::string> payloads = Payloads(50, 2);
  payloads[3] = "";
  payloads[4] = R"({"n":"text"})";
  payloads[5] = "[1]";
  const PayloadColumns columns(payloads);
  const PayloadFilter filter =
      Filter(R"({"or":[{"path":"n","gte":45}, {"not":{"path":"p1","gte":2}}]})");
  std::vector<int64_t> expected;
  for (int64_t row = 0; row < 50; ++row) {
    if (filter.Matches(payloads[static_cast<size_t>(row)])) expected.push_back(row);
  }
  EXPECT_THAT(expected, SizeIs(10));
  for (int time = 0; time < 2; ++time) {  // parsed, then kept
    EXPECT_EQ(*columns.MatchingRows(filter, nullptr, {}), expected);
  }
}

TEST(PayloadColumns, SkipsHiddenRows) {
  const PayloadColumns columns(Payloads(6, 0));
  HiddenRows hidden;
  hidden.hidden = {true, false, false, true, false, false};
  hidden.count = 2;
  EXPECT_THAT(*columns.MatchingRows(Below("n", 5), &hidden, {}), ElementsAre(1, 2, 4));
  EXPECT_THAT(*columns.UnknownPaths({"n", "m"}, &hidden, {}), ElementsAre("m"));
  hidden.hidden.assign(6, true);
  EXPECT_THAT(*columns.UnknownPaths({"n"}, &hidden, {}), ElementsAre("n"));
}

TEST(PayloadColumns, FilterOfMorePathsThanCachedColumns) {
  const PayloadColumns columns(Payloads(20, 40));
  std::string all = R"({"and":[{"path":"n","gte":0})";
  for (int path = 0; path < 40; ++path) {
    absl::StrAppend(&all, ",{\"path\":\"p", path, "\",\"gte\":18}");
  }
  EXPECT_THAT(*columns.MatchingRows(Filter(all + "]}"), nullptr, {}), ElementsAre(18, 19));
}

TEST(PayloadColumns, CancelledCallReturnsCancelled) {
  const PayloadColumns columns(Payloads(9000, 0));
  int looks = 0;
  const auto cancelled = [&] { return ++looks > 1; };
  EXPECT_THAT(columns.MatchingRows(Below("n", 5), nullptr, {.cancelled = cancelled}),
              FailsWith(kCancelled));
  EXPECT_EQ(looks, 2);
  EXPECT_THAT(*columns.MatchingRows(Below("n", 5), nullptr, {}), SizeIs(5)) << "nothing half";
}

// Polls of `cancelled`, of which each pass over the payloads or rows makes some.
int PollsOf(const PayloadColumns& columns, const PayloadFilter& filter, const std::string& owner) {
  int polls = 0;
  const auto count = [&polls] {
    ++polls;
    return false;
  };
  EXPECT_THAT(columns.MatchingRows(filter, nullptr, {.cancelled = count, .owner = owner}), IsOk());
  return polls;
}

TEST(PayloadColumns, PathOfNoItemIsAnsweredWithoutReadingPayloads) {
  const PayloadColumns columns(Payloads(9000, 0));
  const int cold = PollsOf(columns, Below("n", 5), "one");
  const int cached = PollsOf(columns, Below("n", 5), "one");
  EXPECT_GT(cold, cached);
  EXPECT_LE(PollsOf(columns, Below("none", 5), "one"), cached + 1);  // one for the wait
}

TEST(PayloadColumns, NewColumnsAreReserved) {
  const PayloadColumns columns(Payloads(100'000, 0));  // 16 bytes a number
  int64_t reserved = 0;
  const auto reserve = [&](int64_t bytes) {
    reserved += bytes;
    return reserved > (1 << 20) ? absl::ResourceExhaustedError("no more") : absl::OkStatus();
  };
  EXPECT_THAT(columns.MatchingRows(Below("n", 5), nullptr, {.reserve = reserve}),
              FailsWith(kExhausted, "no more"));
  EXPECT_EQ(reserved, 2 << 20);
}

TEST(PayloadColumns, OwnerEvictsOnlyItsOwnColumns) {
  const PayloadColumns columns(Payloads(5000, 17));
  PollsOf(columns, Below("n", 5), "honest");
  const int cached = PollsOf(columns, Below("n", 5), "honest");
  for (int path = 0; path < 17; ++path) {
    PollsOf(columns, Below(absl::StrCat("p", path), 5), "other");
  }
  EXPECT_EQ(PollsOf(columns, Below("n", 5), "honest"), cached);
  EXPECT_GT(PollsOf(columns, Below("p0", 5), "other"), cached) << "evicted";
}

TEST(PayloadColumns, AnswersConcurrentThreads) {
  const PayloadColumns columns(Payloads(300, 30));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 60; ++i) {
        const std::string path = absl::StrCat("p", (i * (thread + 1)) % 30);
        EXPECT_THAT(*columns.MatchingRows(Below(path, i), nullptr, {}), SizeIs(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PayloadColumns, FilterAboveMemoryLimitReturnsResourceExhausted) {
  const PayloadColumns columns({R"({"v": [1, 2, 3, 4, 5, 6, 7, 8, 9], "n": 1})", R"({"n": 2})"});
  const PayloadFilter filter = Below("v", 2);
  EXPECT_THAT(columns.MatchingRows(filter, nullptr, {.memory = 150}),
              FailsWith(kExhausted, "memory / 16"));
  EXPECT_THAT(*columns.MatchingRows(filter, nullptr, {.memory = 1000}), ElementsAre(0));
  EXPECT_THAT(*columns.MatchingRows(Below("n", 2), nullptr, {.memory = 150}), ElementsAre(0));
}

TEST(PayloadPaths, RarePathsHaveTheirRows) {
  std::vector<std::string> payloads(3000, R"({"common": 1, "nested": {"also": [2]}})");
  payloads[7] = R"({"rare": null, "nested": {"rare": {"deep": []}}})";
  payloads[9] = "";
  payloads[11] = R"(["rare"])";
  payloads[2999] = R"({"rare": "twice", "a.b": 1, "rare": 2})";
  PayloadPaths paths;
  ASSERT_THAT(paths.Read(payloads, nullptr), IsOk());
  EXPECT_THAT(paths.RowsWith("rare"), Optional(ElementsAre(7, 2999)));
  EXPECT_THAT(paths.RowsWith("nested.rare.deep"), Optional(ElementsAre(7)));
  EXPECT_THAT(paths.RowsWith("nested.rare"), Optional(IsEmpty())) << "an object has no value";
  EXPECT_THAT(paths.RowsWith("none"), Optional(IsEmpty()));
  EXPECT_EQ(paths.RowsWith("common"), std::nullopt);
  EXPECT_EQ(paths.RowsWith("nested.also"), std::nullopt);
}

TEST(PayloadPaths, TooManyPathsAreAllCommon) {
  std::vector<std::string> payloads;
  for (size_t i = 0; i <= PayloadPaths::kMaxPaths; ++i) {
    payloads.push_back(absl::StrCat(R"({"p)", i, R"(": 1})"));
  }
  PayloadPaths many, fewer;
  ASSERT_THAT(many.Read(payloads, nullptr), IsOk());
  EXPECT_EQ(many.RowsWith("none"), std::nullopt);
  payloads.pop_back();
  ASSERT_THAT(fewer.Read(payloads, nullptr), IsOk());
  EXPECT_THAT(fewer.RowsWith("none"), Optional(IsEmpty()));
}

TEST(PayloadPaths, DeepAndLongPathsAreSkipped) {
  constexpr int kDepth = 5000;
  std::string deep;
  for (int i = 0; i < kDepth; ++i) deep += R"({"a":)";
  deep += "1" + std::string(kDepth, '}');
  PayloadPaths paths;
  ASSERT_THAT(paths.Read({deep, R"({"a": {"a": 1}})"}, nullptr), IsOk());
  EXPECT_THAT(paths.RowsWith("a.a"), Optional(ElementsAre(1)));
}

TEST(PayloadPaths, CancelledReadGoesOnLater) {
  std::vector<std::string> payloads(9000, "{}");
  payloads[1] = R"({"early": 1})";
  payloads[8999] = R"({"late": 1})";
  PayloadPaths paths;
  int polls = 0;
  EXPECT_THAT(paths.Read(payloads, [&] { return ++polls == 3; }), FailsWith(kCancelled));
  payloads[1] = "{}";  // is not read again
  ASSERT_THAT(paths.Read(payloads, nullptr), IsOk());
  EXPECT_THAT(paths.RowsWith("early"), Optional(ElementsAre(1)));
  EXPECT_THAT(paths.RowsWith("late"), Optional(ElementsAre(8999)));
}

}  // namespace
}  // namespace privatemail::testing
