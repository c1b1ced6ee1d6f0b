#include "tests/e2e/load_scene.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "tests/e2e/service.h"
#include "tests/e2e/writers.h"

namespace privatemail::e2e {

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
  std::vector<std::string> flags = {
      "--tls-cert", certificates_->served(), "--tls-key", certificates_->served_key(),
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
  const auto built = admin().BuildEmbedding("things", [](const auto& /*progress*/) {});
  outcomes_.Count("BuildEmbedding", built.status());
  return built.status();
}

absl::StatusOr<Transport> Scene::Connect(const std::string& key_file) const {
  ConnectionOptions options;
  options.server = daemon_->address();
  options.ca_file = certificates_->authority();
  options.key_file = key_file;
  return Transport::Create(options);
}

absl::StatusOr<Transport> Scene::ConnectPinned(const std::string& fingerprint) const {
  ConnectionOptions options;
  options.server = daemon_->address();
  options.trust_fingerprint = fingerprint;
  return Transport::Create(options);
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
