#include "server/config/problems.h"

#include <string>

#include "absl/strings/str_join.h"

namespace privatemail::server {

void Problems::Add(const absl::Status& status) {
  if (!status.ok()) all_.push_back(status);
}

void Problems::Add(const Problems& others) {
  all_.insert(all_.end(), others.all_.begin(), others.all_.end());
}

absl::Status Problems::status() const {
  if (all_.empty()) return absl::OkStatus();
  const auto message = [](std::string* out, const absl::Status& one) {
    out->append(one.message().data(), one.message().size());
  };
  return absl::Status(all_.front().code(), absl::StrJoin(all_, "; ", message));
}

}  // namespace privatemail::server
