#include "server/access/byte_budget.h"

#include "common/base/status_macros.h"
#include "server/access/limits.h"

namespace privatemail::server {

void ByteBudget::Share::GiveBack() {
  const std::lock_guard<std::mutex> guard(budget_->mutex_);
  budget_->taken_ -= taken_;
  taken_ = 0;
}

absl::Status ByteBudget::Share::Take(int64_t bytes, int64_t limit) {
  const std::lock_guard<std::mutex> guard(budget_->mutex_);
  PM_RETURN_IF_ERROR(CheckLimit(budget_->what_, budget_->taken_ + bytes, limit, budget_->setting_));
  budget_->taken_ += bytes;
  taken_ += bytes;
  return absl::OkStatus();
}

absl::Status ByteBudget::Share::Check(int64_t bytes, int64_t limit) const {
  const std::lock_guard<std::mutex> guard(budget_->mutex_);
  return CheckLimit(budget_->what_, budget_->taken_ + bytes, limit, budget_->setting_);
}

}  // namespace privatemail::server
