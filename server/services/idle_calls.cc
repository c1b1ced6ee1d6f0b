#include "server/services/idle_calls.h"

#include <grpc/grpc.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace privatemail::server {

// Keeps gRPC's part of the calls alive until they are cancelled.
class IdleCalls::Ended {
 public:
  bool empty() const { return calls_.empty(); }
  void Add(grpc_call* call, const absl::Status& reason) {
    grpc_call_ref(call);
    calls_.emplace_back(call, reason);
  }
  // Unlike TryCancel this sends a code and a reason.
  void Cancel() {
    for (const auto& [call, reason] : calls_) {
      grpc_call_cancel_with_status(call, static_cast<grpc_status_code>(reason.code()),
                                   std::string(reason.message()).c_str(), nullptr);
      grpc_call_unref(call);
    }
  }

 private:
  std::vector<std::pair<grpc_call*, absl::Status>> calls_;
};

IdleCalls::Watch::Watch(IdleCalls* calls, grpc::CallbackServerContext* context, For what,
                        double seconds)
    : calls_(calls), context_(context), what_(what), seconds_(seconds) {
  const auto deadline =
      since_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const std::lock_guard<std::mutex> guard(calls_->mutex_);
  position_ = calls_->watches_.emplace(deadline, this);
  if (deadline < calls_->wakes_at_) calls_->changed_.notify_one();
}

absl::Status IdleCalls::Watch::End() {
  const std::lock_guard<std::mutex> guard(calls_->mutex_);
  if (watching_) calls_->watches_.erase(position_);
  watching_ = false;
  return end_;
}

IdleCalls::~IdleCalls() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void IdleCalls::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    Ended ended;
    EndExpired(&ended);
    if (!ended.empty()) {
      lock.unlock();
      ended.Cancel();
      lock.lock();
    } else if (watches_.empty()) {
      wakes_at_ = Clock::time_point::max();
      changed_.wait(lock);
    } else {
      // Watches that end early do not wake the thread: that would cost each call a context switch.
      wakes_at_ = watches_.begin()->first;
      const Clock::time_point until = wakes_at_;
      changed_.wait_until(lock, until);
    }
  }
}

void IdleCalls::EndExpired(Ended* ended) {
  while (!watches_.empty() && watches_.begin()->first <= Clock::now()) {
    EndCall(watches_.begin(),
            absl::DeadlineExceededError(absl::StrCat("the caller was idle for ",
                                                     watches_.begin()->second->seconds_,
                                                     " s (stream_idle_seconds)")),
            ended);
  }
}

void IdleCalls::EndUntaken() {
  const auto latest = Clock::now() - std::chrono::duration_cast<Clock::duration>(
                                         std::chrono::duration<double>(kUntakenSeconds));
  Ended ended;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (auto watch = watches_.begin(); watch != watches_.end();) {
      const bool untaken = watch->second->what_ == For::kAnswer && watch->second->since_ < latest;
      watch = untaken ? EndCall(watch,
                                absl::ResourceExhaustedError(absl::StrCat(
                                    "the answer was not taken for ", kUntakenSeconds,
                                    " s while others waited for a place (max_concurrent)")),
                                &ended)
                      : std::next(watch);
    }
  }
  ended.Cancel();
}

IdleCalls::Watches::iterator IdleCalls::EndCall(Watches::iterator watch, absl::Status reason,
                                                Ended* ended) {
  Watch& ending = *watch->second;
  ended->Add(ending.context_->c_call(), reason);
  ending.watching_ = false;
  ending.end_ = std::move(reason);
  return watches_.erase(watch);
}

}  // namespace privatemail::server
