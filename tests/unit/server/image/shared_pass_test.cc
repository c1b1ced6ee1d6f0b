#include "server/image/shared_pass.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "common/image/image_header.h"
#include "common/image/item_list.h"
#include "common/image/score_shares.h"
#include "common/items/quantised_row.h"
#include "tests/unit/server/image/image_scene.h"

namespace privatemail::testing {
namespace {

std::vector<uint32_t> RandomWords(std::mt19937_64* bits) {
  std::vector<uint32_t> words(kDim);
  for (uint32_t& word : words) word = static_cast<uint32_t>((*bits)());
  return words;
}

std::string RandomSelection(uint32_t lists, std::mt19937_64* bits) {
  std::string selection((lists + 7) / 8, '\0');
  for (uint32_t list = 0; list < lists; ++list) {
    if ((*bits)() % 2 == 0) selection[list / 8] |= static_cast<char>(1 << list % 8);
  }
  return selection;
}

uint32_t SentAt(const std::string& scores, size_t row) {
  uint32_t sent = 0;
  std::memcpy(&sent, scores.data() + row * kScoreBytes, kScoreBytes);
  return sent;
}

// The xor of the lists of a selection, by a loop over its bits.
std::string PlainXor(const Image& image, uint32_t group, const std::string& selection) {
  const v1::ListGroup& of = *FindListGroup(image.header(), group);
  std::string sum(of.list_bytes(), '\0');
  for (uint32_t list = 0; list < of.lists(); ++list) {
    if (((selection[list / 8] >> (list % 8)) & 1) == 0) continue;
    const absl::string_view bytes = image.lists(group).substr(list * sum.size(), sum.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= bytes[i];
  }
  return sum;
}

// The bits that are sent of the products, in 64 bits.
std::string PlainScoresOf(const Image& image, const std::vector<uint32_t>& share) {
  std::string scores;
  for (uint64_t row = 0; row < image.header().items(); ++row) {
    int64_t sum = 0;
    for (size_t i = 0; i < share.size(); ++i) {
      sum += int64_t{image.scores()[row * share.size() + i]} * int64_t{share[i]};
    }
    for (const int byte : {6, 14, 22}) scores += static_cast<char>(sum >> byte);
  }
  return scores;
}

TEST(SharedPass, HalvesOfScoresCombineToCosines) {
  const TwoServerScene scene(5000);
  SharedPass pass(scene.MakeAndCreate());
  std::mt19937_64 bits(3);
  RowVector query = RowVector::NullaryExpr(kDim, [&] { return std::normal_distribution()(bits); });
  query.normalize();
  const std::string seed = "0123456789abcdef";
  const std::vector<uint32_t> first = ExpandScoreSeed(seed, kDim);
  const std::vector<int16_t> exact = QuantiseUnitRow(query);
  std::vector<uint32_t> second;
  for (size_t i = 0; i < kDim; ++i) second.push_back(static_cast<uint32_t>(exact[i]) - first[i]);
  ASSERT_OK_AND_ASSIGN(const std::string a, pass.Scores(first, nullptr));
  ASSERT_OK_AND_ASSIGN(const std::string b, pass.Scores(second, nullptr));
  for (int row = 0; row < 5000; ++row) {
    const auto at = static_cast<size_t>(row);
    // Bits 6 to 29 of the product of rows times 2^14.
    const auto sum = static_cast<int32_t>((SentAt(a, at) + SentAt(b, at)) << 8) >> 8;
    EXPECT_NEAR(std::ldexp(sum, 6 - 28), scene.unit_rows.row(row).cast<double>().dot(query), 2e-4);
  }
}

TEST(SharedPass, HalvesOfListsXorToTheChosenList) {
  const TwoServerScene scene(300);
  SharedPass pass(scene.MakeAndCreate());
  std::mt19937_64 bits(4);
  for (uint32_t group = 0; group < 3; ++group) {
    const v1::ListGroup& of = *FindListGroup(pass.image().header(), group);
    for (uint32_t list = 0; list < of.lists(); ++list) {
      const std::string half = RandomSelection(of.lists(), &bits);
      std::string other = half;
      other[list / 8] ^= static_cast<char>(1 << list % 8);
      std::string sum = *pass.Lists(group, {half}, nullptr);
      const std::string second = *pass.Lists(group, {other}, nullptr);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= second[i];
      EXPECT_EQ(sum, pass.image().lists(group).substr(list * of.list_bytes(), of.list_bytes()));
    }
  }
}

// Lists longer than a part of a pass, and as many selections as a message may have.
TEST(SharedPass, LongListsAndManySelectionsEqualLoopOverBits) {
  const TwoServerScene scene(300);
  SharedPass pass(*Image::Create(*scene.Make(200)));
  ASSERT_GT(pass.image().header().partitions(1).list_bytes(), 4096u);
  std::mt19937_64 bits(5);
  std::vector<std::string> selections;
  std::string expected;
  for (int fetch = 0; fetch < kMaxFetches; ++fetch) {
    selections.push_back(RandomSelection(5, &bits));
    expected += PlainXor(pass.image(), 1, selections.back());
  }
  EXPECT_EQ(*pass.Lists(1, selections, nullptr), expected);
}

// Some calls end as soon as they have begun, or while they wait.
TEST(SharedPass, ConcurrentCallsGetTheirOwnAnswers) {
  const auto image = TwoServerScene(3000).MakeAndCreate();
  SharedPass pass(image);
  std::atomic<int> answered = 0, cancelled = 0;
  const auto call = [&](unsigned caller) {
    std::mt19937_64 bits(caller);
    for (int i = 0; i < 20; ++i) {
      int polls_left = bits() % 3 == 0 ? static_cast<int>(bits() % 2) : 1000;
      const auto gone = [&] { return polls_left-- <= 0; };
      absl::StatusOr<std::string> answer;
      std::string expected;
      if (const auto kind = static_cast<uint32_t>(bits() % 4); kind == 3) {
        const std::vector<uint32_t> share = RandomWords(&bits);
        expected = PlainScoresOf(*image, share);
        answer = pass.Scores(share, gone);
      } else {
        const uint32_t lists = FindListGroup(image->header(), kind)->lists();
        std::vector<std::string> selections;
        for (size_t fetch = 0; fetch < 1 + bits() % 3; ++fetch) {
          selections.push_back(RandomSelection(lists, &bits));
          expected += PlainXor(*image, kind, selections.back());
        }
        answer = pass.Lists(kind, selections, gone);
      }
      if (answer.ok()) {
        EXPECT_EQ(*answer, expected);
        ++answered;
      } else {
        EXPECT_THAT(answer, FailsWith(absl::StatusCode::kCancelled));
        ++cancelled;
      }
    }
  };
  std::vector<std::thread> callers;
  for (unsigned caller = 0; caller < 16; ++caller) callers.emplace_back(call, caller);
  for (std::thread& caller : callers) caller.join();
  EXPECT_GT(answered, 100);
  EXPECT_GT(cancelled, 10);
}

TEST(SharedPass, InvalidSharesAndSelectionsAreNamed) {
  SharedPass pass(TwoServerScene(20).MakeAndCreate());
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(pass.Scores(std::vector<uint32_t>(3), nullptr),
              FailsWith(kInvalid, "share must have 4 values, but has 3"));
  EXPECT_THAT(pass.Lists(3, {std::string("x")}, nullptr), FailsWith(kInvalid, "group 3"));
  EXPECT_THAT(pass.Lists(0, {}, nullptr), FailsWith(kInvalid, "selections must be 1 to 64"));
  EXPECT_THAT(pass.Lists(0, std::vector<std::string>(65, std::string(1, '\1')), nullptr),
              FailsWith(kInvalid, "but are 65"));
  EXPECT_THAT(pass.Lists(0, {std::string("\1"), std::string("\1\1")}, nullptr),
              FailsWith(kInvalid, "selections[1] must have 1 bytes, but has 2"));
  EXPECT_THAT(pass.Lists(0, {std::string("\x08")}, nullptr),
              FailsWith(kInvalid, "selections[0] selects a list from 3 on"));
}

TEST(SharedPass, ImageWithoutScoresRefusesThem) {
  SharedPass pass(*Image::Create(*TwoServerScene(20).Make(7, nullptr, false)));
  EXPECT_THAT(pass.Scores(std::vector<uint32_t>(kDim), nullptr),
              FailsWith(absl::StatusCode::kFailedPrecondition, "no scores"));
}

}  // namespace
}  // namespace privatemail::testing
