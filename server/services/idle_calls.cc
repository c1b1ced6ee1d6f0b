#include "server/services/idle_calls.h"

#include <grpc/grpc.h>

#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace privatemail::server {

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
    EndExpired();
    if (watches_.empty()) {
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

void IdleCalls::EndExpired() {
  while (!watches_.empty() && watches_.begin()->first <= Clock::now()) {
    EndCall(watches_.begin(), absl::DeadlineExceededError(absl::StrCat(
                                  "the caller was idle for ", watches_.begin()->second->seconds_,
                                  " s (stream_idle_seconds)")));
  }
}

void IdleCalls::EndUntaken() {
  const auto latest = Clock::now() - std::chrono::duration_cast<Clock::duration>(
                                         std::chrono::duration<double>(kUntakenSeconds));
  const std::lock_guard<std::mutex> guard(mutex_);
  for (auto watch = watches_.begin(); watch != watches_.end();) {
    const bool untaken = watch->second->what_ == For::kAnswer && watch->second->since_ < latest;
    watch = untaken ? EndCall(watch, absl::ResourceExhaustedError(absl::StrCat(
                                         "the answer was not taken for ", kUntakenSeconds,
                                         " s while others waited for a place (max_concurrent)")))
                    : std::next(watch);
  }
}

IdleCalls::Watches::iterator IdleCalls::EndCall(Watches::iterator watch, absl::Status reason) {
  Watch& ended = *watch->second;
  const std::string message(reason.message());
  // Unlike TryCancel this sends a code and a reason.
  grpc_call_cancel_with_status(ended.context_->c_call(),
                               static_cast<grpc_status_code>(reason.code()), message.c_str(),
                               nullptr);
  ended.watching_ = false;
  ended.end_ = std::move(reason);
  return watches_.erase(watch);
}

}  // namespace privatemail::server
