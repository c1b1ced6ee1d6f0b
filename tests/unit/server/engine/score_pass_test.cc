#include "server/engine/score_pass.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/random_polynomials.h"

namespace privatemail::server {
namespace {

using lattice::Evaluator;
using lattice::kAnswerBytes;
using lattice::kDegree;
using testing::FillAtRandom;
using testing::RandomPolynomials;

constexpr int64_t kDimensions = 40;
constexpr int kDelta = 32;

std::shared_ptr<const lattice::EvaluationKeys> MakeKeys(char name, int delta = kDelta) {
  const std::string seed(lattice::kSeedBytes, name);
  const auto count = static_cast<size_t>(lattice::CountLevels(delta) * lattice::kDigits);
  return Evaluator::Best().ParseKeys(seed + RandomPolynomials(count, 1), delta, FillAtRandom);
}

std::shared_ptr<const lattice::Query> MakeQuery(char name, int delta = kDelta,
                                                int64_t dimensions = kDimensions) {
  const std::string seed(lattice::kSeedBytes, name);
  const auto count = static_cast<size_t>(lattice::CountChunks(dimensions, delta));
  return Evaluator::Best().ParseQuery(seed, RandomPolynomials(count, 2), dimensions, delta,
                                      FillAtRandom);
}

std::shared_ptr<EncryptedRows> MakeRows(size_t blocks, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto rows = std::make_shared<EncryptedRows>();
  rows->dimensions = kDimensions;
  for (size_t block = 0; block < blocks; ++block) {
    auto values = std::make_unique<int16_t[]>(static_cast<size_t>(kDegree * kDimensions));
    for (int64_t i = 0; i < kDegree * kDimensions; ++i) {
      values[static_cast<size_t>(i)] = static_cast<int16_t>(random() % 2048);
    }
    rows->blocks.push_back(std::make_shared<const EncryptedBlock>(
        std::move(values), kDimensions, absl::Span<const EncryptedRow>()));
  }
  return rows;
}

ScorePass::Request MakeRequest(char name, size_t queries = 1, const std::string& caller = "",
                               int delta = kDelta) {
  ScorePass::Request request = {caller, MakeKeys(name, delta), {}};
  for (size_t i = 0; i < queries; ++i) {
    request.queries.push_back(MakeQuery(static_cast<char>(name + i % 64), delta));
  }
  return request;
}

using Answer = absl::StatusOr<ScorePass::Answer>;

// Calls `pass` on another thread, and returns once the call waits there.
std::future<Answer> Enter(
    ScorePass& pass, const ScorePass::Request& request,
    const std::function<bool()>& cancelled = [] { return false; }) {
  auto entered = std::make_shared<std::promise<void>>();
  std::future<void> polled = entered->get_future();
  std::future<Answer> answer =
      std::async(std::launch::async, [&pass, request, cancelled, entered, first = true]() mutable {
        return pass.Score(request, [&] {  // polled once the call waits
          if (std::exchange(first, false)) entered->set_value();
          return cancelled();
        });
      });
  polled.wait();
  return answer;
}

// Rows whose first pass waits until Open, so that calls gather.
class Gate {
 public:
  ScorePass::Rows Pass(ScorePass::Rows rows = nullptr) {
    if (passes_++ > 0) return rows;
    begins_.set_value();
    may_go_on_.get_future().wait();
    return rows;
  }
  void AwaitFirstPass() { begins_.get_future().wait(); }
  void Open() { may_go_on_.set_value(); }
  int passes() const { return passes_; }

 private:
  std::promise<void> begins_, may_go_on_;
  std::atomic<int> passes_ = 0;
};

double ProcessorSeconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string ScoreAlone(const ScorePass::Rows& rows, const ScorePass::Request& request,
                       size_t query) {
  std::string scores(rows->blocks.size() * kAnswerBytes, '\0');
  std::vector<const int16_t*> blocks;
  for (const auto& block : rows->blocks) blocks.push_back(block->values());
  Evaluator::Best().Score(blocks, rows->dimensions,
                          {{request.keys.get(), request.queries[query].get(), scores.data()}},
                          [](int count, const std::function<void(int)>& task) {
                            for (int i = 0; i < count; ++i) task(i);
                          });
  return scores;
}

TEST(ScorePass, ConcurrentCallsGetTheScoresOfTheirQueries) {
  const auto rows = MakeRows(3, 1);
  ScorePass pass([&] { return rows; });
  std::vector<ScorePass::Request> requests;
  for (char name = 'a'; name < 'i'; ++name) {
    const int delta = name < 'e' ? 32 : 64;
    requests.push_back(
        {{name}, MakeKeys(name, delta), {MakeQuery(name, delta), MakeQuery('z', delta)}});
  }
  std::vector<std::future<Answer>> calls;
  for (const ScorePass::Request& request : requests) calls.push_back(Enter(pass, request));
  for (size_t i = 0; i < calls.size(); ++i) {
    const Answer answer = calls[i].get();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->rows, rows);
    ASSERT_EQ(answer->scores.size(), 2u);
    EXPECT_TRUE(answer->scores[0] == ScoreAlone(rows, requests[i], 0));
    EXPECT_TRUE(answer->scores[1] == ScoreAlone(rows, requests[i], 1));
  }
}

TEST(ScorePass, CallsThatWaitShareOnePass) {
  const auto rows = MakeRows(1, 1);
  Gate gate;
  ScorePass pass([&] { return gate.Pass(rows); });
  std::vector<std::future<Answer>> calls;
  calls.push_back(Enter(pass, MakeRequest('a')));
  gate.AwaitFirstPass();
  for (int i = 0; i < 5; ++i) calls.push_back(Enter(pass, MakeRequest('a')));
  gate.Open();
  for (auto& call : calls) EXPECT_TRUE(call.get().ok());
  EXPECT_EQ(gate.passes(), 2);
}

TEST(ScorePass, ManyQueriesAndBlocksGetTheScoresOfEach) {
  using Sizes = std::pair<size_t, size_t>;
  for (const auto& [queries, blocks] : {Sizes(20, 1), Sizes(2, 66), Sizes(1, 0)}) {
    const auto rows = MakeRows(blocks, 1);
    ScorePass pass([&] { return rows; });
    const ScorePass::Request request = MakeRequest('!', queries);
    const Answer answer = pass.Score(request, nullptr);
    ASSERT_TRUE(answer.ok());
    ASSERT_EQ(answer->scores.size(), queries);
    for (size_t i = 0; i < queries; ++i) {
      EXPECT_TRUE(answer->scores[i] == ScoreAlone(rows, request, i)) << i;
    }
    EXPECT_EQ(pass.counts().passes, queries == 20 ? 3 : 1);
    EXPECT_EQ(pass.counts().queries, static_cast<int64_t>(queries));
  }
}

// The first pass has queries of long calls alone; the second one must answer all late calls.
void ExpectOvertaken(const std::vector<ScorePass::Request>& long_ones,
                     const std::vector<ScorePass::Request>& late_ones) {
  const auto rows = MakeRows(1, 1);
  Gate gate;
  std::promise<void> late_ones_end;
  std::shared_future<void> end = late_ones_end.get_future();
  std::atomic<bool> overtaken = true;
  ScorePass pass([&] {
    gate.Pass();
    // Answers of the second pass arrive while the third one waits here.
    if (gate.passes() == 3) {
      overtaken = end.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
    }
    return rows;
  });
  std::vector<std::future<Answer>> first, late;
  for (const ScorePass::Request& request : long_ones) first.push_back(Enter(pass, request));
  gate.AwaitFirstPass();
  for (const ScorePass::Request& request : late_ones) late.push_back(Enter(pass, request));
  gate.Open();
  for (auto& call : late) EXPECT_TRUE(call.get().ok());
  late_ones_end.set_value();
  for (auto& call : first) EXPECT_TRUE(call.get().ok());
  EXPECT_TRUE(overtaken);
}

TEST(ScorePass, LateCallsOfAnyCallerOvertakeLongOnes) {
  ExpectOvertaken(std::vector(12, MakeRequest('a', 5, "many")),
                  {MakeRequest('b', 1, "few"), MakeRequest('c', 2, "a few")});
  ExpectOvertaken({MakeRequest('a', 100)}, {MakeRequest('b')});  // of one caller
  // Calls of two deltas share no pass.
  ExpectOvertaken(std::vector(12, MakeRequest('a', 5, "many")), {MakeRequest('b', 1, "few", 64)});
}

// The rows change before every pass.
TEST(ScorePass, AllQueriesOfACallSeeTheSameRows) {
  std::vector<ScorePass::Rows> versions;
  for (uint64_t version = 0; version < 8; ++version) versions.push_back(MakeRows(1, version));
  Gate gate;
  ScorePass pass([&] {
    gate.Pass();
    return versions[static_cast<size_t>(gate.passes() - 1)];
  });
  const ScorePass::Request first = MakeRequest('a', 20), second = MakeRequest('b', 10);
  auto first_call = Enter(pass, first);
  gate.AwaitFirstPass();
  auto second_call = Enter(pass, second);
  gate.Open();
  const Answer of_first = first_call.get(), of_second = second_call.get();
  ASSERT_TRUE(of_first.ok() && of_second.ok());
  EXPECT_EQ(of_first->rows, versions[0]);
  EXPECT_NE(of_second->rows, versions[0]);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(of_first->scores[i] == ScoreAlone(versions[0], first, i)) << i;
  }
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(of_second->scores[i] == ScoreAlone(of_second->rows, second, i)) << i;
  }
}

TEST(ScorePass, CancelledCallIsInNoFurtherPass) {
  const auto rows = MakeRows(1, 1);
  Gate gate;
  ScorePass pass([&] { return gate.Pass(rows); });
  std::atomic<bool> cancel = false;
  auto left = Enter(pass, MakeRequest('a', 3200), [&] { return cancel.load(); });
  gate.AwaitFirstPass();
  cancel = true;
  EXPECT_EQ(left.get().status().code(), absl::StatusCode::kCancelled);
  gate.Open();
  EXPECT_TRUE(pass.Score(MakeRequest('a'), nullptr).ok());
  EXPECT_EQ(pass.counts().queries, ScorePass::kQueriesPerPass + 1);
}

// Compared in processor time, which other processes do not change.
TEST(ScorePass, PassEndsSoonAfterItsOnlyCallerHasLeft) {
  const auto rows = MakeRows(1, 1);
  rows->blocks.resize(600, rows->blocks.front());
  std::atomic<int> passes = 0;
  const ScorePass::Request request = MakeRequest('a', 8);
  const auto work = [&](const std::function<bool()>& cancelled) {
    const double begin = ProcessorSeconds();
    {
      ScorePass pass([&] {
        ++passes;
        return rows;
      });
      (void)pass.Score(request, cancelled);
    }
    return ProcessorSeconds() - begin;
  };
  const double whole = work([] { return false; });
  ASSERT_EQ(passes, 1);
  EXPECT_LT(work([&] { return passes == 2; }), whole / 2);
}

// It leaves after the pass has begun and before its first block.
TEST(ScorePass, CallerWhoLeavesASharedPassDoesNotSpoilTheOther) {
  const auto rows = MakeRows(3, 1);
  Gate gate;
  std::atomic<bool> leaves = false;
  std::promise<void> has_left;
  ScorePass pass([&] {
    gate.Pass();
    if (gate.passes() == 2) {
      leaves = true;
      has_left.get_future().wait();
    }
    return rows;
  });
  const ScorePass::Request stays = MakeRequest('b', 2);
  auto opening = Enter(pass, MakeRequest('a'));
  gate.AwaitFirstPass();
  auto leaver = Enter(pass, stays, [&] { return leaves.load(); });
  auto other = Enter(pass, stays);
  gate.Open();
  EXPECT_TRUE(opening.get().ok());
  EXPECT_EQ(leaver.get().status().code(), absl::StatusCode::kCancelled);
  has_left.set_value();
  const Answer answer = other.get();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(gate.passes(), 2);
  EXPECT_TRUE(answer->scores[0] == ScoreAlone(rows, stays, 0));
  EXPECT_TRUE(answer->scores[1] == ScoreAlone(rows, stays, 1));
}

TEST(ScorePass, QueriesOfOtherDimensionsAreRefusedAlone) {
  const auto rows = MakeRows(1, 1);
  ScorePass pass([&] { return rows; });
  const auto refused = pass.Score({"", MakeKeys('a'), {MakeQuery('a', kDelta, 41)}}, nullptr);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.status().message(),
            "queries must have the 40 dimensions of the collection, but have 41");
  EXPECT_TRUE(pass.Score({"", MakeKeys('a'), {MakeQuery('a')}}, nullptr).ok());
}

}  // namespace
}  // namespace privatemail::server
