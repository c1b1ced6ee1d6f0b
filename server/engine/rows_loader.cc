#include "server/engine/rows_loader.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace privatemail::server {
namespace {

constexpr std::chrono::seconds kFirstDelay(1);
constexpr std::chrono::seconds kMaxDelay(60);
// At most this part of the time goes to attempts that fail.
constexpr int kFailingPart = 10;

}  // namespace

RowsLoader::RowsLoader(Store* store, Warn warn)
    : store_(store), warn_(std::move(warn)), thread_([this] { Run(); }) {}

RowsLoader::~RowsLoader() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RowsLoader::Add(const CollectionView& view) {
  auto job = std::make_unique<Job>();
  job->rows = view.encrypted;
  job->name = view.published->name;
  job->parameters = view.published->parameters;
  job->items = view.items;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    // Finish sees whether the running one has to be repeated.
    if (view.encrypted->rows() != nullptr || view.encrypted.get() == running_) return;
    const bool is_queued = std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& other) {
      return other->rows.lock() == view.encrypted;
    });
    if (is_queued) return;
    waiting_.push_back(std::move(job));
  }
  view.encrypted->AwaitLoad();
  changed_.notify_all();
}

std::unique_ptr<RowsLoader::Job> RowsLoader::Take() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    const Clock::time_point now = Clock::now();
    const auto next =
        std::min_element(waiting_.begin(), waiting_.end(), [&](const auto& a, const auto& b) {
          const Clock::time_point a_due = std::max(a->due, now), b_due = std::max(b->due, now);
          return std::pair(a_due, a->items) < std::pair(b_due, b->items);
        });
    if (next == waiting_.end()) {
      changed_.wait(lock);
    } else if ((*next)->due > now) {
      changed_.wait_until(lock, (*next)->due);
    } else {
      std::unique_ptr<Job> job = std::move(*next);
      waiting_.erase(next);
      job->running = job->rows.lock();
      running_ = job->running.get();
      return job;
    }
  }
  return nullptr;
}

void RowsLoader::Run() {
  while (std::unique_ptr<Job> job = Take()) {
    const Clock::time_point start = Clock::now();
    absl::Status status = absl::NotFoundError("the collection was removed");
    if (job->running != nullptr) {
      status = job->running->Load(*store_, job->parameters, stopped_);
    }
    Finish(std::move(job), status, Clock::now() - start);
  }
}

void RowsLoader::Finish(std::unique_ptr<Job> job, const absl::Status& status,
                        Clock::duration duration) {
  const std::shared_ptr<EncryptedCollection> rows = std::move(job->running);
  if (warn_ && !status.ok() && !absl::IsNotFound(status) && !stopped_ && job->delay.count() == 0) {
    warn_(absl::StrCat("encrypted searches of collection ", job->name,
                       " are refused, because its rows cannot be loaded: ", status.message()));
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  running_ = nullptr;
  if (rows == nullptr || absl::IsNotFound(status) || rows->rows() != nullptr) return;
  job->delay = std::max<Clock::duration>(
      std::clamp<Clock::duration>(2 * job->delay, kFirstDelay, kMaxDelay), kFailingPart * duration);
  job->due = Clock::now() + job->delay;
  waiting_.push_back(std::move(job));
}

}  // namespace privatemail::server
