#include "server/services/idle_streams.h"

#include <grpc/grpc.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace privatemail {
namespace {

using Clock = std::chrono::steady_clock;

// ServerContext::TryCancel would tell the caller nothing but "cancelled"; the call below it tells
// code and reason.
void EndCall(grpc::ServerContext* context, double seconds) {
  const std::string reason(IdleStreams::TimedOut(seconds).message());
  grpc_call_cancel_with_status(context->c_call(), GRPC_STATUS_DEADLINE_EXCEEDED, reason.c_str(),
                               nullptr);
}

}  // namespace

IdleStreams::Watch::Watch(IdleStreams* streams, grpc::ServerContext* context, double seconds)
    : streams_(streams), context_(context), seconds_(seconds) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  const std::lock_guard<std::mutex> guard(streams_->mutex_);
  place_ = streams_->watches_.emplace(deadline, this);
  if (place_ == streams_->watches_.begin()) streams_->changed_.notify_one();
}

bool IdleStreams::Watch::End() {
  const std::lock_guard<std::mutex> guard(streams_->mutex_);
  if (watching_) streams_->watches_.erase(place_);
  watching_ = false;
  return ended_;
}

IdleStreams::~IdleStreams() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

absl::Status IdleStreams::TimedOut(double seconds) {
  return absl::DeadlineExceededError(
      absl::StrCat("the caller neither sent nor took a message of this stream within ", seconds,
                   " s (stream_idle_seconds)"));
}

void IdleStreams::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    if (watches_.empty()) {
      changed_.wait(lock);
    } else if (const auto first = watches_.begin(); first->first > Clock::now()) {
      const Clock::time_point deadline = first->first;  // the watch may end meanwhile
      changed_.wait_until(lock, deadline);
    } else {
      // Under the lock, so that the call cannot end before.
      Watch* const watch = first->second;
      watches_.erase(first);
      watch->watching_ = false;
      watch->ended_ = true;
      EndCall(watch->context_, watch->seconds_);
    }
  }
}

}  // namespace privatemail
