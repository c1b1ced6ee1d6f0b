#include "server/services/idle_calls.h"

#include <grpc/grpc.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace privatemail::server {
namespace {

// Unlike TryCancel this sends a code and a reason.
void EndCall(grpc::CallbackServerContext* context, double seconds) {
  const std::string reason(IdleCalls::TimeoutError(seconds).message());
  grpc_call_cancel_with_status(context->c_call(), GRPC_STATUS_DEADLINE_EXCEEDED, reason.c_str(),
                               nullptr);
}

}  // namespace

IdleCalls::Watch::Watch(IdleCalls* calls, grpc::CallbackServerContext* context, double seconds)
    : calls_(calls), context_(context), seconds_(seconds) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  const std::lock_guard<std::mutex> guard(calls_->mutex_);
  position_ = calls_->watches_.emplace(deadline, this);
  if (deadline < calls_->wakes_at_) calls_->changed_.notify_one();
}

bool IdleCalls::Watch::End() {
  const std::lock_guard<std::mutex> guard(calls_->mutex_);
  if (watching_) calls_->watches_.erase(position_);
  watching_ = false;
  return ended_;
}

IdleCalls::~IdleCalls() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

absl::Status IdleCalls::TimeoutError(double seconds) {
  return absl::DeadlineExceededError(
      absl::StrCat("the caller was idle for ", seconds, " s (stream_idle_seconds)"));
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

// Under the lock, so that no watched call is destroyed meanwhile.
void IdleCalls::EndExpired() {
  while (!watches_.empty() && watches_.begin()->first <= Clock::now()) {
    Watch* const watch = watches_.begin()->second;
    watches_.erase(watches_.begin());
    watch->watching_ = false;
    watch->ended_ = true;
    EndCall(watch->context_, watch->seconds_);
  }
}

}  // namespace privatemail::server
