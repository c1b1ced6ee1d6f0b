#include "tests/e2e/load_outcomes.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace privatemail::e2e {
namespace {

constexpr size_t kMaxRecordedFaults = 20;

bool IsSecondBuild(const absl::Status& status) {
  return absl::IsAborted(status) && absl::StrContains(status.message(), "is being built already");
}

bool IsExpected(const absl::Status& status, KeyState key) {
  if (key == KeyState::kRevoked) return absl::IsUnauthenticated(status);
  if (key == KeyState::kBeingRevoked && absl::IsUnauthenticated(status)) return true;
  return status.ok() || IsBusy(status) || IsSecondBuild(status);
}

const char* NameOf(KeyState key) {
  switch (key) {
    case KeyState::kValid:
      return "valid";
    case KeyState::kBeingRevoked:
      return "being revoked";
    case KeyState::kRevoked:
      break;
  }
  return "revoked";
}

}  // namespace

bool IsBusy(const absl::Status& status) {
  return absl::IsResourceExhausted(status) &&
         absl::StartsWith(status.message(), "the server is busy: ");
}

bool Outcomes::Count(const std::string& rpc, const absl::Status& status, KeyState key) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    ++counts_[rpc][absl::StatusCodeToString(status.code())];
  }
  if (!IsExpected(status, key)) {
    AddFault(absl::StrCat(rpc, " with a key that is ", NameOf(key), ": ", status.ToString()));
  }
  return status.ok();
}

void Outcomes::AddFault(const std::string& what) {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++faults_;
  if (first_faults_.size() < kMaxRecordedFaults) first_faults_.push_back(what);
}

void Outcomes::CompareWith(const std::string& audit_log) {
  Counts logged;
  int64_t left_out = 0;  // calls without a valid key that came too fast for a line each
  std::ifstream file(audit_log);
  for (std::string line; std::getline(file, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (entry.is_discarded()) {
      AddFault("the audit log has the line " + line);
      continue;
    }
    if (entry.contains("event")) {  // the daemon's own: starts, reloads
      left_out += entry.value("calls", int64_t{0});
      continue;
    }
    ++logged[entry.value("rpc", "")][entry.value("code", "")];
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const auto& [rpc, codes] : counts_) {
    const auto refused = codes.find("UNAUTHENTICATED");
    if (refused == codes.end() || left_out == 0) continue;
    int64_t& lines = logged[rpc]["UNAUTHENTICATED"];
    left_out -= refused->second - lines;
    lines = refused->second;
  }
  if (logged == counts_ && left_out == 0) return;
  ++faults_;
  first_faults_.push_back(absl::StrCat("the callers counted ", nlohmann::json(counts_).dump(),
                                       ", but the audit log ", nlohmann::json(logged).dump()));
}

int64_t Outcomes::faults() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return faults_;
}

std::vector<std::string> Outcomes::first_faults() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return first_faults_;
}

int64_t Outcomes::Total(const std::string& code) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  int64_t total = 0;
  for (const auto& [rpc, codes] : counts_) {
    if (const auto found = codes.find(code); found != codes.end()) total += found->second;
  }
  return total;
}

std::string Outcomes::Summary() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::string summary;
  for (const auto& [rpc, codes] : counts_) {
    absl::StrAppend(&summary, summary.empty() ? "" : ", ", rpc);
    for (const auto& [code, count] : codes) absl::StrAppend(&summary, " ", count, " ", code);
  }
  return summary;
}

}  // namespace privatemail::e2e
