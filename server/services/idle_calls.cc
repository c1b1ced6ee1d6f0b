#include "server/services/idle_calls.h"

#include <grpc/grpc.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace privatemail::server {

IdleCalls::Watch::Watch(IdleCalls* calls, grpc::CallbackServerContext* context,
                        const ArrivingMessages::Place* message, double seconds)
    : calls_(calls), context_(context), message_(message), seconds_(seconds) {
  const std::lock_guard<std::mutex> guard(calls_->mutex_);
  since_ = calls_->now_;
  position_ = calls_->watches_.insert(calls_->watches_.end(), this);
}

absl::Status IdleCalls::Watch::End() {
  const std::lock_guard<std::mutex> guard(calls_->mutex_);
  if (watching_) calls_->watches_.erase(position_);
  watching_ = false;
  return end_;
}

void IdleCalls::Run(const std::stop_token& stop) {
  constexpr absl::Duration kInterval = absl::Milliseconds(100);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_.wait_for(lock, stop, absl::ToChronoNanoseconds(kInterval),
                            [&stop] { return stop.stop_requested(); })) {
    now_ += kInterval;
    lock.unlock();
    End([](const Watch& watch, double seconds) -> absl::Status {
      if (seconds >= watch.seconds_) {
        return absl::DeadlineExceededError(
            absl::StrCat("the caller was idle for ", watch.seconds_, " s"));
      }
      if (watch.message_ != nullptr && seconds >= kUntakenSeconds &&
          watch.message_->KeepsOthersWaiting()) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the message did not arrive within ", kUntakenSeconds,
                         " s while others waited to send theirs (memory / 16)"));
      }
      return absl::OkStatus();
    });
    lock.lock();
  }
}

void IdleCalls::EndUntaken() {
  End([](const Watch& watch, double seconds) {
    return watch.message_ != nullptr || seconds < kUntakenSeconds
               ? absl::OkStatus()
               : absl::ResourceExhaustedError(
                     absl::StrCat("the answer was not taken for ", kUntakenSeconds,
                                  " s while others waited for a place (max_concurrent)"));
  });
}

void IdleCalls::End(absl::FunctionRef<absl::Status(const Watch& watch, double seconds)> reason) {
  // Cancelled once mutex_ is free, which their destruction may take in the same thread. The
  // references keep gRPC's part of the calls alive until then.
  std::vector<std::pair<grpc_call*, absl::Status>> ended;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (auto next = watches_.begin(); next != watches_.end();) {
      Watch& watch = **next++;
      watch.end_ = reason(watch, absl::ToDoubleSeconds(now_ - watch.since_));
      if (watch.end_.ok()) continue;
      grpc_call* const call = watch.context_->c_call();
      grpc_call_ref(call);
      ended.emplace_back(call, watch.end_);
      watches_.erase(watch.position_);
      watch.watching_ = false;
    }
  }
  for (const auto& [call, why] : ended) {
    // Unlike TryCancel this sends a code and a reason.
    grpc_call_cancel_with_status(call, static_cast<grpc_status_code>(why.code()),
                                 std::string(why.message()).c_str(), nullptr);
    grpc_call_unref(call);
  }
}

}  // namespace privatemail::server
