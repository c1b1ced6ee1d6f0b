#include "server/engine/score_pass.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};

}  // namespace

struct ScorePass::Call {
  Request request;
  Answer answer;
  size_t taken = 0;  // how many queries passes took up; if any, answer.rows stay
  absl::Status status;
  std::atomic<bool> cancelled = false;
  std::promise<void> done;

  int delta() const { return request.keys->delta; }
  bool ended() const { return !status.ok() || taken == request.queries.size(); }
};

int64_t ScorePass::MemoryFor(int64_t queries, int64_t blocks, int64_t dimensions, int delta) {
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const auto work = static_cast<int64_t>(lattice::Evaluator::ScoreMemory(1, delta));
  const auto query = static_cast<int64_t>(lattice::Query::Memory(dimensions, delta));
  return queries * (blocks * static_cast<int64_t>(lattice::kAnswerBytes) + query) +
         std::min(queries, kQueriesPerPass) * cores * work;
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
    Calls calls;  // spliced, without memory, of which there may be none
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (waiting_.empty()) {
        running_ = false;
        return;
      }
      calls.swap(waiting_);
    }
    calls.remove_if([](const auto& call) { return call->cancelled.load(); });
    std::vector<Part> parts;
    try {
      parts = Choose(&calls);
      if (!parts.empty()) {
        ++passes_;
        queries_ += std::ssize(parts);
        Run(parts);
      }
    } catch (const std::exception&) {
      for (const auto& call : calls) {
        call->status = absl::ResourceExhaustedError("no memory for the scores: try again");
      }
    }
    calls.remove_if([](const auto& call) {
      if (!call->ended()) return false;
      call->done.set_value();
      return true;
    });
    const std::lock_guard<std::mutex> guard(mutex_);
    waiting_.splice(waiting_.begin(), calls);
    MoveToEnd(parts);
  }
}

// The first call decides which others can join its pass, so callers take turns at being first.
void ScorePass::MoveToEnd(const std::vector<Part>& served) {
  auto call = waiting_.begin();
  for (size_t left = waiting_.size(); left > 0; --left) {
    const auto next = std::next(call);
    if (std::any_of(served.begin(), served.end(), [&](const Part& part) {
          return part.call->request.caller == (*call)->request.caller;
        })) {
      waiting_.splice(waiting_.end(), waiting_, call);
    }
    call = next;
  }
}

std::vector<ScorePass::Part> ScorePass::Choose(Calls* calls) const {
  const Rows current = current_();
  for (const auto& call : *calls) {
    if (call->taken > 0) continue;
    const Rows& now = call->request.rows == nullptr ? current : call->request.rows;
    const int64_t dimensions = call->request.queries.front()->dimensions;
    if (now != nullptr && dimensions == now->dimensions) {
      call->answer.rows = now;
    } else {
      call->status = absl::FailedPreconditionError(
          absl::StrCat("queries must have the ", now == nullptr ? 0 : now->dimensions,
                       " dimensions of the collection, but have ", dimensions));
    }
  }
  std::vector<Part> parts;
  std::map<std::string, int> taken;  // by caller
  const auto can_join = [&](const Call& call) {
    if (call.ended() || parts.empty()) return !call.ended();
    const Call& first = *parts.front().call;
    return call.delta() == first.delta() && call.answer.rows == first.answer.rows;
  };
  while (std::ssize(parts) < kQueriesPerPass) {
    auto next = calls->end();
    for (auto call = calls->begin(); call != calls->end(); ++call) {
      if (!can_join(**call)) continue;
      if (next == calls->end() || taken[(*call)->request.caller] < taken[(*next)->request.caller]) {
        next = call;
      }
    }
    if (next == calls->end()) break;
    ++taken[(*next)->request.caller];
    parts.push_back({*next, (*next)->taken++});
    calls->splice(calls->end(), *calls, next);
  }
  return parts;
}

void ScorePass::Run(const std::vector<Part>& parts) {
  const EncryptedRows& rows = *parts.front().call->answer.rows;
  std::vector<const int16_t*> blocks;
  for (const auto& block : rows.blocks) blocks.push_back(block->values());
  std::vector<lattice::Target> targets;
  for (const auto& [call, query] : parts) {
    call->answer.scores.resize(call->request.queries.size());
    std::string& scores = call->answer.scores[query];
    scores.resize(rows.blocks.size() * lattice::kAnswerBytes);
    targets.push_back(
        {call->request.keys.get(), call->request.queries[query].get(), scores.data()});
  }
  const auto everyone_has_left = [&] {
    return std::all_of(parts.begin(), parts.end(),
                       [](const Part& part) { return part.call->cancelled.load(); });
  };
  lattice::Evaluator::Best().Score(blocks, rows.dimensions, targets,
                                   [&](int count, const std::function<void(int)>& task) {
                                     ParallelFor(count, [&](int i) {
                                       if (!everyone_has_left()) task(i);
                                     });
                                   });
}

}  // namespace privatemail::server
