#include "server/engine/score_pass.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <iterator>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};
// Blocks that slices of queries take in turn: some tens of milliseconds for one query.
constexpr size_t kBlocksAtOnce = 64;

}  // namespace

struct ScorePass::Call {
  Request request;
  Answer answer;
  absl::Status status;
  std::atomic<bool> cancelled = false;
  std::promise<void> done;

  int delta() const { return request.keys->delta; }
  size_t queries() const { return request.queries.size(); }
};

int64_t ScorePass::MemoryFor(int64_t queries, int64_t blocks, int64_t dimensions, int delta) {
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const auto work = static_cast<int64_t>(lattice::Evaluator::ScoreMemory(1, delta));
  const auto query = static_cast<int64_t>(lattice::Query::Memory(dimensions, delta));
  return queries * (blocks * static_cast<int64_t>(lattice::kAnswerBytes) + query) +
         std::min(queries, kQueriesAtOnce) * cores * work;
}

absl::StatusOr<ScorePass::Answer> ScorePass::Score(Request request,
                                                   const CancelledFunction& cancelled) {
  const auto call = std::make_shared<Call>();
  call->request = std::move(request);
  std::future<void> done = call->done.get_future();
  bool refused = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    waiting_.push_back(call);
    if (!std::exchange(running_, true)) {
      try {
        pool_.Run([this] { RunPasses(); });
      } catch (const std::exception&) {
        refused = true;
      }
    }
  }
  if (refused) RunPasses();  // the system has no thread left
  do {
    if (const absl::Status status = CheckNotCancelled(cancelled); !status.ok()) {
      call->cancelled = true;
      const std::lock_guard<std::mutex> guard(mutex_);
      std::erase(waiting_, call);
      return status;
    }
  } while (done.wait_for(kPollInterval) != std::future_status::ready);
  PM_RETURN_IF_ERROR(call->status);
  return std::move(call->answer);
}

void ScorePass::RunPasses() {
  while (true) {
    std::list<std::shared_ptr<Call>> taken;  // without memory, of which there may be none
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (waiting_.empty()) {
        running_ = false;
        return;
      }
      const int delta = waiting_.front()->delta();
      size_t queries = 0;
      for (auto call = waiting_.begin(); call != waiting_.end();) {
        const auto next = std::next(call);
        const bool fits = taken.empty() || queries + (*call)->queries() <= kQueriesAtOnce;
        if ((*call)->delta() == delta && fits) {
          queries += (*call)->queries();
          taken.splice(taken.end(), waiting_, call);
        }
        call = next;
      }
    }
    try {
      Pass({taken.begin(), taken.end()});
    } catch (const std::exception&) {
      for (const auto& call : taken) {
        call->status = absl::ResourceExhaustedError("no memory for the scores: try again");
      }
    }
    for (const auto& call : taken) call->done.set_value();
  }
}

void ScorePass::Pass(const std::vector<std::shared_ptr<Call>>& calls) {
  const ScoredRows rows = current_();
  std::vector<CallTarget> targets;
  for (const auto& call : calls) {
    const int64_t dimensions = call->request.queries.front()->dimensions;
    if (dimensions != rows.dimensions) {
      call->status = absl::FailedPreconditionError(
          absl::StrCat("queries must have the ", rows.dimensions,
                       " dimensions of the collection, but have ", dimensions));
      continue;
    }
    call->answer.rows = rows;
    call->answer.scores.resize(call->queries());
    for (size_t i = 0; i < call->queries(); ++i) {
      std::string& scores = call->answer.scores[i];
      scores.resize(rows.blocks.size() * lattice::kAnswerBytes);
      targets.push_back(
          {call.get(), {call->request.keys.get(), call->request.queries[i].get(), scores.data()}});
    }
  }
  if (targets.empty()) return;
  ++passes_;
  queries_ += std::ssize(targets);
  for (size_t first = 0; first < rows.blocks.size(); first += kBlocksAtOnce) {
    const auto begin = rows.blocks.begin() + static_cast<std::ptrdiff_t>(first);
    const auto count = std::min(kBlocksAtOnce, rows.blocks.size() - first);
    const std::vector<const int16_t*> blocks(begin, begin + static_cast<std::ptrdiff_t>(count));
    for (size_t query = 0; query < targets.size(); query += kQueriesAtOnce) {
      ScoreSlice(blocks, rows.dimensions, first,
                 absl::MakeConstSpan(targets).subspan(query, kQueriesAtOnce));
    }
  }
}

void ScorePass::ScoreSlice(const std::vector<const int16_t*>& blocks, int64_t dimensions,
                           size_t first, absl::Span<const CallTarget> slice) {
  std::vector<lattice::Target> targets;
  std::vector<const Call*> callers;
  for (const CallTarget& of_call : slice) {
    if (of_call.call->cancelled) continue;
    targets.push_back(of_call.target);
    targets.back().answers += first * lattice::kAnswerBytes;
    if (callers.empty() || callers.back() != of_call.call) callers.push_back(of_call.call);
  }
  if (targets.empty()) return;
  const auto everyone_has_left = [&] {
    return std::all_of(callers.begin(), callers.end(),
                       [](const Call* call) { return call->cancelled.load(); });
  };
  const auto run = [&](int count, const std::function<void(int)>& task) {
    ParallelFor(count, [&](int i) {
      if (!everyone_has_left()) task(i);
    });
  };
  lattice::Evaluator::Best().Score(blocks, dimensions, targets, run);
}

}  // namespace privatemail::server
