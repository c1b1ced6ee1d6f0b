#include "server/access/admission.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

constexpr std::chrono::milliseconds kAskEvery(100);

}  // namespace

absl::StatusOr<Admission::Place> Admission::Enter(const std::function<bool()>& gone) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (working_ >= limits_.max_concurrent || !queue_.empty()) {
    PM_RETURN_IF_ERROR(Wait(&lock, gone));
  }
  ++working_;
  return Place(this);
}

absl::Status Admission::Wait(std::unique_lock<std::mutex>* lock,
                             const std::function<bool()>& gone) {
  const int64_t waiting = static_cast<int64_t>(queue_.size());
  if (waiting >= limits_.max_queued) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the server is busy: ", working_, " calls are worked on (max_concurrent ",
        limits_.max_concurrent, ") and ", waiting, " wait (max_queued ", limits_.max_queued, ")"));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto waited = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const void* const self = &start;
  queue_.push_back(self);
  absl::Status status;
  while (queue_.front() != self || working_ >= limits_.max_concurrent) {
    if (waited() >= limits_.queue_seconds) {
      status = absl::ResourceExhaustedError(
          absl::StrCat("the server is busy: the call waited ", limits_.queue_seconds,
                       " s (queue_seconds) while ", working_,
                       " others were worked on (max_concurrent ", limits_.max_concurrent, ")"));
      break;
    }
    const std::chrono::duration<double> left(limits_.queue_seconds - waited());
    changed_.wait_for(*lock, std::min<std::chrono::duration<double>>(kAskEvery, left));
    if (gone()) {
      status = absl::CancelledError("the caller did not wait until it was its turn");
      break;
    }
  }
  queue_.erase(std::find(queue_.begin(), queue_.end(), self));
  changed_.notify_all();
  return status;
}

void Admission::Leave() {
  const std::lock_guard<std::mutex> guard(mutex_);
  --working_;
  changed_.notify_all();
}

void Admission::SetLimits(const Limits& limits) {
  const std::lock_guard<std::mutex> guard(mutex_);
  limits_ = limits;
  changed_.notify_all();
}

int64_t Admission::working() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return working_;
}

int64_t Admission::waiting() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return static_cast<int64_t>(queue_.size());
}

}  // namespace privatemail
