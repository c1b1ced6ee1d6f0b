#include "server/engine/write_recovery.h"

#include <utility>

namespace privatemail::server {

WriteRecovery::WriteRecovery(Catalog* catalog, Report report)
    : catalog_(catalog), report_(std::move(report)) {
  if (!catalog_->read_only()) return;
  const absl::Status status = catalog_->TryWritable();
  if (status.ok()) return;
  report_(status);
  thread_ = std::thread([this] { Run(); });
}

WriteRecovery::~WriteRecovery() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WriteRecovery::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (
      !wake_.wait_for(lock, absl::ToChronoMilliseconds(kInterval), [this] { return stopping_; })) {
    lock.unlock();
    if (catalog_->TryWritable().ok()) return report_(absl::OkStatus());
    lock.lock();
  }
}

}  // namespace privatemail::server
