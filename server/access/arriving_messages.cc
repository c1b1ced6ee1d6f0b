#include "server/access/arriving_messages.h"

#include <algorithm>
#include <utility>

namespace privatemail::server {

ArrivingMessages::ArrivingMessages(const Limits& limits)
    : most_(std::max<int64_t>(2, limits.max_transport_memory / 4 * 3 / limits.max_message_bytes)) {}

void ArrivingMessages::Place::Enter(const std::string& key, bool is_operator,
                                    std::function<void()> start) {
  {
    const std::lock_guard<std::mutex> guard(messages_->mutex_);
    key_ = key;
    is_operator_ = is_operator;
    if (!messages_->HasRoom(*this)) {
      state_ = State::kWaiting;
      entry_ = messages_->waiting_.insert(messages_->waiting_.end(), {this, std::move(start)});
      return;
    }
    messages_->Admit(this);
  }
  start();
}

void ArrivingMessages::Place::StopWaiting() {
  std::function<void()> start;
  {
    const std::lock_guard<std::mutex> guard(messages_->mutex_);
    if (state_ != State::kWaiting) return;
    start = std::move(entry_->start);
    messages_->waiting_.erase(entry_);
    state_ = State::kOutside;
  }
  start();
}

void ArrivingMessages::Place::Leave() {
  std::vector<std::function<void()>> starts;
  {
    const std::lock_guard<std::mutex> guard(messages_->mutex_);
    if (state_ == State::kWaiting) messages_->waiting_.erase(entry_);
    if (std::exchange(state_, State::kOutside) != State::kTaken) return;
    starts = messages_->GiveBack(key_);
  }
  for (const std::function<void()>& start : starts) start();
}

bool ArrivingMessages::Place::KeepsOthersWaiting() const {
  const std::lock_guard<std::mutex> guard(messages_->mutex_);
  if (state_ != State::kTaken) return false;
  const int64_t own = messages_->taken_.Of(key_);
  return std::any_of(
      messages_->waiting_.begin(), messages_->waiting_.end(),
      [&](const Waiting& waiting) { return messages_->taken_.Of(waiting.place->key_) < own; });
}

bool ArrivingMessages::HasRoom(const Place& place) const {
  if (place.is_operator_) return taken_.total() < most_;
  const int64_t reserved = most_ < 4 ? 0 : 1;
  return taken_.total() < most_ - reserved && taken_.MayTake(place.key_, 1, most_);
}

void ArrivingMessages::Admit(Place* place) {
  place->state_ = Place::State::kTaken;
  taken_.Take(place->key_, 1);
}

std::vector<std::function<void()>> ArrivingMessages::GiveBack(const std::string& key) {
  taken_.Take(key, -1);
  std::vector<std::function<void()>> starts;
  while (true) {
    auto next = waiting_.end();
    for (auto one = waiting_.begin(); one != waiting_.end(); ++one) {
      if (!HasRoom(*one->place)) continue;
      if (next == waiting_.end() || taken_.Of(one->place->key_) < taken_.Of(next->place->key_)) {
        next = one;
      }
    }
    if (next == waiting_.end()) return starts;
    Admit(next->place);
    starts.push_back(std::move(next->start));
    waiting_.erase(next);
  }
}

}  // namespace privatemail::server
