#include "tests/e2e/load_scene.h"

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "tests/e2e/service.h"
#include "tests/e2e/writers.h"

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

absl::StatusOr<std::unique_ptr<Scene>> Scene::Start(const std::string& program,
                                                    const std::string& postgres) {
  std::unique_ptr<Scene> scene(new Scene());
  PM_ASSIGN_OR_RETURN(scene->certificates_, Certificates::Make(scene->folder_.path()));
  PM_RETURN_IF_ERROR(scene->StartDaemon(program, postgres));
  PM_ASSIGN_OR_RETURN(scene->admin_, scene->Connect(scene->folder_ / "data/admin.key"));
  PM_RETURN_IF_ERROR(scene->FillThings());
  return scene;
}

absl::Status Scene::StartDaemon(const std::string& program, const std::string& postgres) {
  Command flags = {"--tls-cert", certificates_->served(), "--tls-key", certificates_->served_key(),
                   "--max-concurrent", "8", "--max-queued", "8", "--queue-seconds", "2",
                   // Reloads on SIGHUP only, never between the replacement of certificate and key.
                   "--tls-reload-seconds", "86400", "--log-level", "warning"};
  if (!postgres.empty()) {
    const std::string file = folder_ / "conninfo";
    PM_RETURN_IF_ERROR(WriteFileAtomically(file, postgres + "\n", 0600));
    flags.insert(flags.end(), {"--store", "postgres", "--postgres-file", file});
  }
  daemon_ = std::make_unique<Daemon>(folder_ / "data", flags, "127.0.0.1:0", program);
  if (daemon_->listening()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(program, " does not listen: ", daemon_->program().Wait().err));
}

absl::Status Scene::FillThings() {
  const auto created = admin().CreateCollection(NewThings());
  if (!outcomes_.Count("CreateCollection", created.status())) return created.status();
  int sent = 0;
  const auto filled = admin().UpsertItems([&](v1::UpsertItemsRequest* message) {
    if (sent == kBaseItems) return false;
    message->set_collection("things");
    for (const int last = sent + 100; sent < last; ++sent) {
      *message->add_items() = ItemOf(absl::StrFormat("base-%04d", sent), /*number=*/1);
    }
    return true;
  });
  if (!outcomes_.Count("UpsertItems", filled.status())) return filled.status();
  const auto built = admin().BuildEmbedding(
      "things", [](const auto& /*progress*/) {}, /*accept_misalignment=*/true);
  outcomes_.Count("BuildEmbedding", built.status());
  return built.status();
}

absl::StatusOr<AdminClient> Scene::Connect(const std::string& key_file) const {
  ConnectionOptions options;
  options.server = daemon_->address();
  options.ca_file = certificates_->authority();
  options.key_file = key_file;
  return AdminClient::Create(options);
}

absl::StatusOr<AdminClient> Scene::ConnectPinned(const std::string& fingerprint) const {
  ConnectionOptions options;
  options.server = daemon_->address();
  options.trust_fingerprint = fingerprint;
  return AdminClient::Create(options);
}

absl::StatusOr<Scene::Key> Scene::MakeKey(const std::string& name, v1::KeyScope scope) {
  v1::CreateKeyRequest request;
  request.set_name(name);
  request.add_scopes(scope);
  request.add_collections("things");
  absl::StatusOr<v1::CreateKeyResponse> made;
  PM_RETURN_IF_ERROR(Persist("CreateKey", [&] {
    made = admin().CreateKey(request);
    return made.status();
  }));
  const std::string file = folder_ / (name + ".key");
  PM_RETURN_IF_ERROR(WriteFileAtomically(file, made->text() + "\n", 0600));
  return Key{made->key().id(), file};
}

absl::Status Scene::Persist(const char* rpc, const std::function<absl::Status()>& call,
                            KeyState key) {
  while (true) {
    const absl::Status status = call();
    outcomes_.Count(rpc, status, key);
    if (!IsBusy(status)) return status;
    Pause();
  }
}

void Scene::Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

}  // namespace privatemail::e2e
