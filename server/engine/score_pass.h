// Encrypted scores of concurrent calls from shared passes over a collection's rows.
#ifndef PRIVATEMAIL_SERVER_ENGINE_SCORE_PASS_H_
#define PRIVATEMAIL_SERVER_ENGINE_SCORE_PASS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/cancellation.h"
#include "common/base/thread_pool.h"
#include "common/lattice/evaluator.h"

namespace privatemail::server {

// The rows of one moment, which a pass reads. Immutable.
struct ScoredRows {
  std::vector<const int16_t*> blocks;  // as lattice::Evaluator::Score
  int64_t dimensions = 0;
  std::shared_ptr<const void> owner;  // of the blocks, and of what answers name beside them
};

// Answers encrypted queries to one collection. While a pass over its rows runs on all cores, calls
// gather; the next pass answers all of them whose queries have the same delta, from the rows of the
// moment when it starts. Sees ciphertexts, which tell nothing about targets; the work depends on
// public sizes alone. Thread-safe.
class ScorePass {
 public:
  // current: the rows of this moment. Called from any thread.
  explicit ScorePass(std::function<ScoredRows()> current) : current_(std::move(current)) {}
  // No call may be running. Waits for the pass of a cancelled one.
  ~ScorePass() = default;

  struct Request {
    std::shared_ptr<const lattice::EvaluationKeys> keys;
    std::vector<std::shared_ptr<const lattice::Query>> queries;  // at least one, all of keys' delta
  };
  struct Answer {
    ScoredRows rows;
    std::vector<std::string> scores;  // of each query: kAnswerBytes for each block
  };

  struct Counts {
    int64_t passes = 0;
    int64_t queries = 0;  // that they took up, of cancelled calls included
  };

  // `cancelled` is polled every 50 ms. A pass works on at most kQueriesAtOnce queries at once,
  // drops those of calls that are cancelled, and ends with the blocks that run once all are.
  // - FAILED_PRECONDITION: rows of other dimensions than the queries
  // - RESOURCE_EXHAUSTED: no memory for the answers
  // - CANCELLED
  absl::StatusOr<Answer> Score(Request request, const CancelledFunction& cancelled);

  Counts counts() const { return {passes_, queries_}; }

  // Their work and answers stay in the processor's caches together.
  static constexpr int64_t kQueriesAtOnce = 32;
  // The bytes that a call of so many queries takes until its answer is sent.
  static int64_t MemoryFor(int64_t queries, int64_t blocks, int64_t dimensions, int delta);

 private:
  struct Call;
  struct CallTarget {
    const Call* call;
    lattice::Target target;
  };

  // Runs passes until no call waits.
  void RunPasses();
  void Pass(const std::vector<std::shared_ptr<Call>>& calls);
  // Scores up to kQueriesAtOnce queries on consecutive blocks from `first`.
  static void ScoreSlice(const std::vector<const int16_t*>& blocks, int64_t dimensions,
                         size_t first, absl::Span<const CallTarget> slice);

  const std::function<ScoredRows()> current_;
  std::mutex mutex_;                          // guards the following
  std::list<std::shared_ptr<Call>> waiting_;  // in order of arrival
  bool running_ = false;
  std::atomic<int64_t> passes_ = 0;
  std::atomic<int64_t> queries_ = 0;
  ThreadPool pool_;  // last: its job uses the other members
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_SCORE_PASS_H_
