#include "server/engine/score_pass.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/engine/evaluation_key_cache.h"

namespace privatemail::server {
namespace {

using lattice::Evaluator;
using lattice::kAnswerBytes;
using lattice::kDegree;

constexpr int64_t kDimensions = 40;
constexpr int kDelta = 32;

bool FillAtRandom(std::string_view input, uint8_t* output, size_t size) {
  std::seed_seq seed(input.begin(), input.end());
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < size; ++i) output[i] = static_cast<uint8_t>(random());
  return true;
}

std::string Polynomials(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    std::vector<int64_t> values(kDegree);
    for (int64_t& value : values) value = static_cast<int64_t>(random() >> 25);
    lattice::AppendPolynomial(values.data(), &bytes);
  }
  return bytes;
}

std::shared_ptr<const lattice::EvaluationKeys> MakeKeys(char name, int delta = kDelta) {
  const std::string seed(lattice::kSeedBytes, name);
  const auto count = static_cast<size_t>(lattice::CountLevels(delta) * lattice::kDigits);
  return Evaluator::Best().ParseKeys(seed + Polynomials(count, 1), delta, FillAtRandom);
}

std::shared_ptr<const lattice::Query> MakeQuery(char name, int delta = kDelta,
                                                int64_t dimensions = kDimensions) {
  const std::string seed(lattice::kSeedBytes, name);
  const auto count = static_cast<size_t>(lattice::CountChunks(dimensions, delta));
  return Evaluator::Best().ParseQuery(seed, Polynomials(count, 2), dimensions, delta, FillAtRandom);
}

ScoredRows MakeRows(size_t blocks, uint64_t seed) {
  const size_t block_size = static_cast<size_t>(kDegree * kDimensions);
  const auto values = std::make_shared<std::vector<int16_t>>(blocks * block_size);
  std::mt19937_64 random(seed);
  for (int16_t& value : *values) value = static_cast<int16_t>(random() % 2048);
  ScoredRows rows;
  for (size_t block = 0; block < blocks; ++block) {
    rows.blocks.push_back(&(*values)[block * block_size]);
  }
  rows.dimensions = kDimensions;
  rows.owner = values;
  return rows;
}

std::string ScoreAlone(const ScoredRows& rows, const ScorePass::Request& request, size_t query) {
  std::string scores(rows.blocks.size() * kAnswerBytes, '\0');
  Evaluator::Best().Score(rows.blocks, rows.dimensions,
                          {{request.keys.get(), request.queries[query].get(), scores.data()}},
                          [](int count, const std::function<void(int)>& task) {
                            for (int i = 0; i < count; ++i) task(i);
                          });
  return scores;
}

TEST(ScorePass, ConcurrentCallsGetTheScoresOfTheirQueries) {
  const ScoredRows rows = MakeRows(3, 1);
  ScorePass pass([&] { return rows; });
  std::vector<ScorePass::Request> requests;
  for (char name = 'a'; name < 'i'; ++name) {
    const int delta = name < 'e' ? 32 : 64;
    requests.push_back({MakeKeys(name, delta), {MakeQuery(name, delta), MakeQuery('z', delta)}});
  }
  std::vector<std::future<absl::StatusOr<ScorePass::Answer>>> calls;
  for (const ScorePass::Request& request : requests) {
    calls.push_back(std::async(std::launch::async, [&] { return pass.Score(request, nullptr); }));
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    const absl::StatusOr<ScorePass::Answer> answer = calls[i].get();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->rows.owner, rows.owner);
    ASSERT_EQ(answer->scores.size(), 2u);
    EXPECT_TRUE(answer->scores[0] == ScoreAlone(rows, requests[i], 0));
    EXPECT_TRUE(answer->scores[1] == ScoreAlone(rows, requests[i], 1));
  }
}

TEST(ScorePass, CallsThatWaitShareOnePass) {
  const ScoredRows rows = MakeRows(1, 1);
  std::promise<void> first_pass_begins, first_pass_may_go_on;
  std::atomic<int> passes = 0;
  ScorePass pass([&] {
    if (passes++ == 0) {
      first_pass_begins.set_value();
      first_pass_may_go_on.get_future().wait();
    }
    return rows;
  });
  const ScorePass::Request request = {MakeKeys('a'), {MakeQuery('a')}};
  std::vector<std::future<absl::StatusOr<ScorePass::Answer>>> calls;
  const auto call = [&] {
    calls.push_back(std::async(std::launch::async, [&] { return pass.Score(request, nullptr); }));
  };
  call();
  first_pass_begins.get_future().wait();
  std::atomic<int> polled = 0;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(std::async(std::launch::async, [&] {
      bool counted = false;
      return pass.Score(request, [&] {  // polled once the call waits
        if (!std::exchange(counted, true)) ++polled;
        return false;
      });
    }));
  }
  while (polled < 5) std::this_thread::yield();
  first_pass_may_go_on.set_value();
  for (auto& running : calls) EXPECT_TRUE(running.get().ok());
  EXPECT_EQ(passes, 2);
}

TEST(ScorePass, CancelledCallEndsAndOthersAreAnswered) {
  const ScoredRows rows = MakeRows(1, 1);
  std::promise<void> begins, may_go_on;
  std::atomic<int> passes = 0;
  ScorePass pass([&] {
    if (passes++ == 0) {
      begins.set_value();
      may_go_on.get_future().wait();
    }
    return rows;
  });
  const ScorePass::Request request = {MakeKeys('a'), {MakeQuery('a')}};
  std::atomic<bool> cancel = false;
  auto cancelled = std::async(std::launch::async,
                              [&] { return pass.Score(request, [&] { return cancel.load(); }); });
  begins.get_future().wait();
  auto other = std::async(std::launch::async, [&] { return pass.Score(request, nullptr); });
  cancel = true;
  EXPECT_EQ(cancelled.get().status().code(), absl::StatusCode::kCancelled);
  may_go_on.set_value();
  EXPECT_TRUE(other.get().ok());
}

// More queries than a pass works on at once, and more blocks than take turns.
TEST(ScorePass, ManyQueriesAndBlocksGetTheScoresOfEach) {
  using Sizes = std::pair<size_t, size_t>;
  for (const auto& [queries, blocks] : {Sizes(70, 1), Sizes(2, 66)}) {
    const ScoredRows rows = MakeRows(blocks, 1);
    ScorePass pass([&] { return rows; });
    ScorePass::Request request = {MakeKeys('a'), {}};
    for (size_t i = 0; i < queries; ++i) {
      request.queries.push_back(MakeQuery(static_cast<char>('!' + i)));
    }
    const auto answer = pass.Score(request, nullptr);
    ASSERT_TRUE(answer.ok());
    ASSERT_EQ(answer->scores.size(), queries);
    for (size_t i = 0; i < queries; ++i) {
      EXPECT_TRUE(answer->scores[i] == ScoreAlone(rows, request, i)) << i;
    }
    EXPECT_EQ(pass.counts().passes, 1);
    EXPECT_EQ(pass.counts().queries, static_cast<int64_t>(queries));
  }
}

// The whole pass of the cancelled call would take a hundred times as long as one of 32 queries.
TEST(ScorePass, PassEndsSoonAfterItsOnlyCallerHasLeft) {
  const ScoredRows rows = MakeRows(1, 1);
  std::atomic<int> passes = 0;
  ScorePass pass([&] {
    ++passes;
    return rows;
  });
  using Clock = std::chrono::steady_clock;
  const auto keys = MakeKeys('a');
  const std::vector few(32, MakeQuery('a'));
  Clock::time_point begin = Clock::now();
  ASSERT_TRUE(pass.Score({keys, few}, nullptr).ok());
  const Clock::duration slice = Clock::now() - begin;
  const std::vector many(3200, MakeQuery('a'));
  const auto left = pass.Score({keys, many}, [&] { return passes == 2; });
  EXPECT_EQ(left.status().code(), absl::StatusCode::kCancelled);
  begin = Clock::now();
  EXPECT_TRUE(pass.Score({keys, few}, nullptr).ok());
  EXPECT_LT((Clock::now() - begin) / slice, 20);
}

TEST(ScorePass, CallerWhoLeavesASharedPassDoesNotSpoilTheOther) {
  const ScoredRows rows = MakeRows(130, 1);  // three turns of blocks
  std::promise<void> first_begins, first_may_go_on;
  std::atomic<int> passes = 0;
  ScorePass pass([&] {
    if (passes++ == 0) {
      first_begins.set_value();
      first_may_go_on.get_future().wait();
    }
    return rows;
  });
  const ScorePass::Request first = {MakeKeys('a'), {MakeQuery('a')}};
  const ScorePass::Request stays = {MakeKeys('b'), {MakeQuery('b'), MakeQuery('c')}};
  auto opening = std::async(std::launch::async, [&] { return pass.Score(first, nullptr); });
  first_begins.get_future().wait();
  std::atomic<int> waiting = 0;
  const auto share = [&](const std::function<bool()>& leaves) {
    return std::async(std::launch::async, [&, leaves] {
      bool counted = false;
      return pass.Score(stays, [&, leaves] {
        if (!std::exchange(counted, true)) ++waiting;
        return leaves();
      });
    });
  };
  auto leaver = share([&] { return passes == 2; });
  auto other = share([] { return false; });
  while (waiting < 2) std::this_thread::yield();
  first_may_go_on.set_value();
  EXPECT_TRUE(opening.get().ok());
  EXPECT_EQ(leaver.get().status().code(), absl::StatusCode::kCancelled);
  const auto answer = other.get();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(passes, 2);
  EXPECT_TRUE(answer->scores[0] == ScoreAlone(rows, stays, 0));
  EXPECT_TRUE(answer->scores[1] == ScoreAlone(rows, stays, 1));
}

TEST(ScorePass, QueriesOfOtherDimensionsAreRefusedAlone) {
  const ScoredRows rows = MakeRows(1, 1);
  ScorePass pass([&] { return rows; });
  const auto refused = pass.Score({MakeKeys('a'), {MakeQuery('a', kDelta, 41)}}, nullptr);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.status().message(),
            "queries must have the 40 dimensions of the collection, but have 41");
  EXPECT_TRUE(pass.Score({MakeKeys('a'), {MakeQuery('a')}}, nullptr).ok());
}

TEST(ScorePass, AnswersNoRows) {
  ScorePass pass([] { return ScoredRows{.blocks = {}, .dimensions = kDimensions, .owner = {}}; });
  const auto answer = pass.Score({MakeKeys('a'), {MakeQuery('a')}}, nullptr);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->scores, std::vector<std::string>{""});
}

TEST(EvaluationKeyCache, EvictsTheLeastRecentlyUsed) {
  const auto keys_bytes = static_cast<int64_t>(lattice::EvaluationKeys::Memory(kDelta));
  EvaluationKeyCache cache(2 * keys_bytes);
  const auto first = MakeKeys('a');
  cache.Add("first", first);
  cache.Add("second", MakeKeys('b'));
  cache.Add("first", MakeKeys('c'));  // there already
  EXPECT_EQ(cache.Find("first"), first);
  EXPECT_EQ(cache.bytes(), 2 * keys_bytes);
  EXPECT_EQ(cache.size(), 2u);
  cache.Add("third", MakeKeys('d'));
  EXPECT_EQ(cache.bytes(), 2 * keys_bytes);
  EXPECT_EQ(cache.Find("second"), nullptr);
  EXPECT_EQ(cache.Find("first"), first);
  EXPECT_NE(cache.Find("third"), nullptr);
  EXPECT_EQ(cache.Find(""), nullptr);
}

TEST(EvaluationKeyCache, KeepsASingleSetBeyondItsCapacity) {
  EvaluationKeyCache cache(1);
  cache.Add("only", MakeKeys('a'));
  EXPECT_NE(cache.Find("only"), nullptr);
  cache.Add("next", MakeKeys('b'));
  EXPECT_EQ(cache.Find("only"), nullptr);
  EXPECT_NE(cache.Find("next"), nullptr);
}

}  // namespace
}  // namespace privatemail::server
