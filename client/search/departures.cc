#include "client/search/departures.h"

#include <algorithm>
#include <thread>

namespace privatemail::client {

using Clock = std::chrono::steady_clock;

Clock::time_point NextDeparture(Clock::time_point arrived, Clock::time_point now,
                                std::chrono::milliseconds interval) {
  const std::chrono::nanoseconds step = interval;
  const auto past = now - arrived;
  return arrived + (past <= step ? 1 : (past + step - std::chrono::nanoseconds(1)) / step) * step;
}

absl::Status Departures::Wait(const std::function<bool()>& is_cancelled) {
  constexpr std::chrono::milliseconds kPollInterval(50);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!arrived_.has_value()) return absl::OkStatus();
  const Clock::time_point departure = NextDeparture(*arrived_, Clock::now(), interval_);
  lock.unlock();
  for (Clock::time_point now = Clock::now(); now < departure; now = Clock::now()) {
    if (is_cancelled()) return absl::CancelledError("the search was cancelled");
    std::this_thread::sleep_until(std::min(departure, now + kPollInterval));
  }
  return absl::OkStatus();
}

void Departures::NoteArrival() {
  const std::lock_guard<std::mutex> lock(mutex_);
  arrived_ = Clock::now();
}

Departures::Search::Search(Departures& departures) : departures_(departures) {
  const std::lock_guard<std::mutex> lock(departures_.mutex_);
  ++departures_.searches_;
}

Departures::Search::~Search() {
  const std::lock_guard<std::mutex> lock(departures_.mutex_);
  --departures_.searches_;
}

void Departures::Search::SetWork(const SearchWork& work) {
  const std::chrono::milliseconds own = SearchInterval(work);
  const std::lock_guard<std::mutex> lock(departures_.mutex_);
  departures_.interval_ = departures_.searches_ > 1 ? std::max(departures_.interval_, own) : own;
}

}  // namespace privatemail::client
