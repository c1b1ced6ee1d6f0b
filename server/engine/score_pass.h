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
#include "common/base/cancellation.h"
#include "common/base/thread_pool.h"
#include "common/lattice/evaluator.h"
#include "server/engine/encrypted_rows.h"

namespace privatemail::server {

// Answers encrypted queries to one collection. While a pass over its rows runs on all cores, calls
// gather; the next pass takes at most kQueriesPerPass queries of one delta, of callers and of
// their calls in turn. So a caller with one query waits for a pass or two, however many another one
// has sent. All queries of a call see the rows of the moment when a pass takes the first of them.
// Sees ciphertexts, which tell nothing about targets; the work depends on public sizes alone.
// Thread-safe.
class ScorePass {
 public:
  // current: the rows of this moment; null: none. Called from any thread.
  using Rows = std::shared_ptr<const EncryptedRows>;
  explicit ScorePass(std::function<Rows()> current) : current_(std::move(current)) {}
  // No call may be running. Waits for the pass of a cancelled one.
  ~ScorePass() = default;

  struct Request {
    std::string caller;  // who shares the passes; the id of an access key
    std::shared_ptr<const lattice::EvaluationKeys> keys;
    std::vector<std::shared_ptr<const lattice::Query>> queries;  // at least one, all of keys' delta
    Rows rows = nullptr;  // null: those of the moment when a pass takes the first query
  };
  struct Answer {
    Rows rows;
    std::vector<std::string> scores;  // of each query: kAnswerBytes for each block
  };

  struct Counts {
    int64_t passes = 0;
    int64_t queries = 0;  // that they took up, of cancelled calls included
  };

  // `cancelled` is polled every 50 ms. A cancelled call is in no further pass, and a pass of
  // cancelled calls alone ends with the blocks that run.
  // - FAILED_PRECONDITION: rows of other dimensions than the queries
  // - RESOURCE_EXHAUSTED: no memory for the answers
  // - CANCELLED
  absl::StatusOr<Answer> Score(Request request, const CancelledFunction& cancelled);

  Counts counts() const { return {passes_, queries_}; }

  // More would hardly spare work: 8 queries share a pass at .3 (768 dimensions) to .6 (128) of the
  // work of a query alone, as 16 and 32 do (encrypted_benchmark).
  static constexpr int64_t kQueriesPerPass = 8;
  // The bytes that a call of so many queries takes until its answer is sent.
  static int64_t MemoryFor(int64_t queries, int64_t blocks, int64_t dimensions, int delta);

 private:
  struct Call;
  struct Part {  // of a pass
    std::shared_ptr<Call> call;
    size_t query;
  };
  using Calls = std::list<std::shared_ptr<Call>>;

  // Runs passes until no call waits.
  void RunPasses();
  // With mutex_ held: calls of the callers who were served wait behind all others.
  void MoveToEnd(const std::vector<Part>& served);
  // The queries of the next pass. Calls that it serves move to the end.
  std::vector<Part> Choose(Calls* calls) const;
  static void Run(const std::vector<Part>& parts);

  const std::function<Rows()> current_;
  std::mutex mutex_;  // guards the following
  Calls waiting_;     // of the caller who was not served for the longest time first
  bool running_ = false;
  std::atomic<int64_t> passes_ = 0;
  std::atomic<int64_t> queries_ = 0;
  ThreadPool pool_;  // last: its job uses the other members
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_SCORE_PASS_H_
