#include "tests/unit/server/engine/core_calls.h"

#include <algorithm>
#include <fstream>
#include <future>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

// Fewer places than callers.
Limits FewPlaces() {
  Limits limits;
  limits.max_concurrent = 8;
  limits.max_queued = 4;
  limits.queue_seconds = .2;
  return limits;
}

// Concurrent builds and deletions may overtake a scheduled build.
void ExpectBuiltOrOvertaken(const std::string& name, const absl::Status& outcome) {
  EXPECT_TRUE(outcome.ok() || absl::IsAborted(outcome) || absl::IsNotFound(outcome) ||
              absl::IsCancelled(outcome))
      << name << ": " << outcome;
}

}  // namespace

bool IsBusy(const absl::Status& status) {
  return absl::IsResourceExhausted(status) &&
         absl::StartsWith(status.message(), "the server is busy: ");
}

CoreCalls::CoreCalls()
    : catalog_(*Catalog::Open(*SqliteStore::Open(folder_ / "data"), folder_.path())),
      keys_(*KeyRing::Open(KeyFile(folder_ / "keys"), folder_ / "admin.key")),
      audit_(*AuditLog::Open(folder_ / "audit.jsonl", 0)),
      admission_(std::make_unique<Admission>(FewPlaces())),
      builds_(std::make_unique<Maintenance>(
          catalog_.get(), RebuildOptions{.01, absl::Milliseconds(50)},
          Maintenance::Hooks{[](const CollectionView& /*view*/) { return absl::OkStatus(); },
                             [](const std::string& /*name*/, double /*done*/) {},
                             ExpectBuiltOrOvertaken})) {}

NewAccessKey CoreCalls::MakeKey(Scopes scopes, double requests_per_second) {
  KeyGrant grant;
  grant.name = "caller";
  grant.scopes = scopes;
  grant.requests_per_second = requests_per_second;
  return *keys_->Create(std::move(grant));
}

absl::Status CoreCalls::Call(const std::string& key_text,
                             const std::function<absl::Status()>& work) {
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const AccessKey> key, keys_->Authenticate(key_text));
  PM_RETURN_IF_ERROR(rates_.Take(*key, RateLimiter::Clock::now()));
  PM_ASSIGN_OR_RETURN(Admission::Ticket ticket,
                      admission_->Enter({key->id, key->Has(kAdminScope)}));
  std::promise<absl::Status> done;
  thread_pool_.Run([&] {
    absl::Status status = Work(&ticket, work);
    AuditEntry entry;
    entry.time = absl::Now();
    entry.key_id = key->id;
    entry.code = absl::StatusCodeToString(status.code());
    EXPECT_THAT(audit_->Write(entry), IsOk());
    ++calls_;
    // Moved, not copied: the reference count is in absl's library, which is not instrumented, so
    // that deleting the last copy would be reported as a race.
    done.set_value(std::move(status));
  });
  return done.get_future().get();
}

absl::Status CoreCalls::Work(Admission::Ticket* ticket, const std::function<absl::Status()>& work) {
  PM_RETURN_IF_ERROR(ticket->Await([] { return false; }));
  return work();
}

void CoreCalls::Reload() {
  Limits limits = FewPlaces();
  limits.max_concurrent -= ++reloads_ % 2;
  admission_->SetLimits(limits);
  builds_->SetOptions({.01, absl::Milliseconds(50 + reloads_ % 2)});
  EXPECT_THAT(keys_->Reload(), IsOk());
  EXPECT_THAT(audit_->Reopen(), IsOk());
}

int64_t CoreCalls::audit_lines() const {
  std::ifstream file(folder_ / "audit.jsonl");
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

}  // namespace privatemail::testing
