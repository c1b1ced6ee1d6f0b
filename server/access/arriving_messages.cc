#include "server/access/arriving_messages.h"

#include <algorithm>
#include <utility>

namespace privatemail::server {

ArrivingMessages::ArrivingMessages(const Limits& limits)
    : most_(std::max<int64_t>(2, limits.max_transport_memory / 4 * 3 / limits.max_message_bytes)) {}

void ArrivingMessages::Place::Enter(const std::string& key, std::function<void()> start) {
  {
    const std::lock_guard<std::mutex> guard(messages_->mutex_);
    key_ = key;
    if (!messages_->HasRoom(key)) {
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
  const int64_t own = messages_->CountOf(key_);
  return std::any_of(messages_->waiting_.begin(), messages_->waiting_.end(),
                     [&](const Waiting& waiting) {
                       return messages_->CountOf(waiting.place->key_) + 1 < own;
                     });
}

bool ArrivingMessages::HasRoom(const std::string& key) const {
  return taken_ < most_ && (key.empty() || CountOf(key) < most_ / 2);
}

int64_t ArrivingMessages::CountOf(const std::string& key) const {
  const auto found = taken_by_key_.find(key);
  return found == taken_by_key_.end() ? 0 : found->second;
}

void ArrivingMessages::Admit(Place* place) {
  place->state_ = Place::State::kTaken;
  ++taken_;
  ++taken_by_key_[place->key_];
}

std::vector<std::function<void()>> ArrivingMessages::GiveBack(const std::string& key) {
  --taken_;
  if (--taken_by_key_[key] == 0) taken_by_key_.erase(key);
  std::vector<std::function<void()>> starts;
  for (auto next = waiting_.begin(); next != waiting_.end() && taken_ < most_;) {
    const auto waiting = next++;
    if (!HasRoom(waiting->place->key_)) continue;
    Admit(waiting->place);
    starts.push_back(std::move(waiting->start));
    waiting_.erase(waiting);
  }
  return starts;
}

}  // namespace privatemail::server
