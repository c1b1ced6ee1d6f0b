// Callers who change who is let in and what the server shows of itself.
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/load_callers.h"

namespace privatemail::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The daemon looks once a second at the file that its certificate stands in.
constexpr auto kLongestReload = std::chrono::seconds(20);

// Calls with the key of a transport until it is refused; `revoked` is true from when RevokeKey was
// answered, `revoking` from when it was sent.
void CallUntilRefused(Scene* scene, const Transport& transport, const std::atomic<bool>& revoking,
                      const std::atomic<bool>& revoked) {
  while (true) {
    const bool was_revoked = revoked;
    const absl::Status status = transport.GetCollection("things").status();
    const KeyState key = was_revoked ? KeyState::kRevoked
                         : revoking  ? KeyState::kBeingRevoked
                                     : KeyState::kValid;
    scene->outcomes().Count("GetCollection", status, key);
    if (absl::IsUnauthenticated(status) || was_revoked) return;
    if (!status.ok()) Scene::Pause();
  }
}

// On the connection that it had and on a new one.
void ExpectRefused(Scene* scene, const Scene::Key& key, const Transport& former) {
  const auto transport = scene->Connect(key.file);
  for (const Transport* one : {&former, &*transport}) {
    scene->outcomes().Count("ListCollections", one->ListCollections().status(), KeyState::kRevoked);
  }
}

bool Shows(const Scene& scene, const std::string& fingerprint) {
  // Whoever is not the server of this certificate is sent nothing.
  return scene.ConnectPinned(fingerprint)->IsServing("").ok();
}

bool AwaitCertificate(const Scene& scene, const std::string& fingerprint) {
  for (const auto end = steady_clock::now() + kLongestReload; steady_clock::now() < end;) {
    if (Shows(scene, fingerprint)) return true;
    std::this_thread::sleep_for(milliseconds(100));
  }
  return false;
}

}  // namespace

void ChangeKeys(Scene* scene, Achievements* achievements) {
  while (scene->GoesOn()) {
    const auto key = scene->MakeKey("guest", v1::KEY_SCOPE_SEARCH);
    if (!key.ok()) continue;
    const auto transport = scene->Connect(key->file);
    const absl::Status opened = scene->Persist(
        "GetCollection", [&] { return transport->GetCollection("things").status(); });
    std::atomic<bool> revoking = false, revoked = false;
    std::thread guest([&] { CallUntilRefused(scene, *transport, revoking, revoked); });
    std::this_thread::sleep_for(milliseconds(20));
    revoking = true;
    const absl::Status done =
        scene->Persist("RevokeKey", [&] { return scene->admin().RevokeKey(key->id).status(); });
    revoked = true;
    guest.join();
    if (!opened.ok() || !done.ok()) continue;
    ExpectRefused(scene, *key, *transport);
    ++achievements->revoked_keys;
  }
}

void ChangeCertificates(Scene* scene, Achievements* achievements) {
  for (int number = 1; scene->GoesOn(); ++number) {
    const absl::Status replaced = scene->certificates().Serve(number);
    if (!replaced.ok()) return scene->outcomes().AddFault(replaced.ToString());
    scene->daemon().program().Signal(SIGHUP);
    if (!AwaitCertificate(*scene, scene->certificates().FingerprintOf(number))) {
      scene->outcomes().AddFault("new connections do not get the new certificate");
    } else if (Shows(*scene, scene->certificates().FingerprintOf(number - 1))) {
      scene->outcomes().AddFault("a new connection got the former certificate");
    } else {
      ++achievements->certificates;
    }
  }
}

}  // namespace privatemail::e2e
