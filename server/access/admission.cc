#include "server/access/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/stopwatch.h"

namespace privatemail::server {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(100);

// Places for operators only.
int64_t Reserved(const Limits& limits) { return std::min<int64_t>(4, limits.max_concurrent / 8); }

}  // namespace

Admission::Ticket::Ticket(Ticket&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)), entry_(other.entry_) {}

Admission::Ticket::~Ticket() {
  if (admission_ != nullptr) admission_->Leave(entry_);
}

bool Admission::Ticket::IsAdmitted() const {
  const std::lock_guard<std::mutex> guard(admission_->mutex_);
  return entry_->running;
}

bool Admission::Ticket::WaitsForOthers() const {
  const std::lock_guard<std::mutex> guard(admission_->mutex_);
  const Limits& limits = admission_->limits_;
  return !entry_->running &&
         admission_->calls_[true].total() >= limits.max_concurrent - Reserved(limits) &&
         admission_->KeyMayTakeMore(entry_->caller, true) &&
         admission_->StoreMayTakeMore(entry_->caller, true);
}

absl::Status Admission::Ticket::Await(const std::function<bool()>& cancelled) {
  absl::Duration waited;
  std::unique_lock<std::mutex> lock(admission_->mutex_);
  while (!entry_->running) {
    const Limits& limits = admission_->limits_;
    const absl::Duration left = absl::Seconds(limits.queue_seconds) - waited;
    if (!(left > absl::ZeroDuration())) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the server is busy: the call waited ", limits.queue_seconds, " s while ",
                       admission_->calls_[true].total(), " others were running (max_concurrent ",
                       limits.max_concurrent, ")"));
    }
    const Stopwatch step;
    admission_->changed_.wait_for(lock, absl::ToChronoNanoseconds(std::min(kPollInterval, left)));
    waited += std::min(kPollInterval, step.Elapsed());
    lock.unlock();
    if (cancelled()) return absl::CancelledError("the caller stopped waiting in the queue");
    lock.lock();
  }
  return absl::OkStatus();
}

absl::StatusOr<Admission::Ticket> Admission::Enter(const Caller& caller) {
  const std::lock_guard<std::mutex> guard(mutex_);
  // Waiting calls that can run have been admitted, so this one overtakes none.
  const bool runs = CanRun(caller);
  if (!runs) PM_RETURN_IF_ERROR(CheckCanWait(caller));
  entries_.push_back({caller, runs});
  Count(entries_.back(), 1);
  return Ticket(this, std::prev(entries_.end()));
}

bool Admission::CanRun(const Caller& caller) const {
  const int64_t reserved = caller.is_operator ? 0 : Reserved(limits_);
  return calls_[true].total() < limits_.max_concurrent - reserved && KeyMayTakeMore(caller, true) &&
         StoreMayTakeMore(caller, true);
}

// An operator, who may do everything anyway, has no share.
bool Admission::KeyMayTakeMore(const Caller& caller, bool running) const {
  return caller.is_operator ||
         (calls_[running].MayTake(caller.key, 1, limits_.max_concurrent) &&
          (!caller.uses_store ||
           store_calls_[running].MayTake(caller.key, 1, KeyShares::Half(limits_.max_concurrent))));
}

bool Admission::StoreMayTakeMore(const Caller& caller, bool running) const {
  const int64_t places = running ? limits_.max_concurrent : limits_.max_queued;
  return !caller.uses_store || store_calls_[running].total() < KeyShares::Half(places);
}

absl::Status Admission::CheckCanWait(const Caller& caller) const {
  const int64_t waiting = calls_[false].total();
  if (waiting >= limits_.max_queued + (caller.is_operator ? Reserved(limits_) : 0)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the server is busy: ", calls_[true].total(), " calls are running (max_concurrent ",
        limits_.max_concurrent, ") and ", waiting, " wait"));
  }
  if (!StoreMayTakeMore(caller, false)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the server is busy: calls that need the store have half of all places "
                     "(max_concurrent ",
                     limits_.max_concurrent, ") and of the queue, which are taken"));
  }
  if (KeyMayTakeMore(caller, false)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "key ", caller.key, " has ", calls_[true].Of(caller.key), " running calls and ",
      calls_[false].Of(caller.key), " waiting ones, the most of one key (half of max_concurrent ",
      limits_.max_concurrent, ", a quarter for calls that need the store)"));
}

void Admission::AdmitWaiting() {
  for (Entry& entry : entries_) {
    if (entry.running || !CanRun(entry.caller)) continue;
    Count(entry, -1);
    entry.running = true;
    Count(entry, 1);
  }
  changed_.notify_all();
}

void Admission::Leave(std::list<Entry>::iterator entry) {
  const std::lock_guard<std::mutex> guard(mutex_);
  Count(*entry, -1);
  entries_.erase(entry);
  AdmitWaiting();
}

void Admission::SetLimits(const Limits& limits) {
  const std::lock_guard<std::mutex> guard(mutex_);
  limits_ = limits;
  AdmitWaiting();
}

void Admission::Count(const Entry& entry, int64_t change) {
  calls_[entry.running].Take(entry.caller.key, change);
  if (entry.caller.uses_store) store_calls_[entry.running].Take(entry.caller.key, change);
}

int64_t Admission::Total(bool running) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return calls_[running].total();
}

}  // namespace privatemail::server
