// Callers of the mixed load. Each function runs in its own thread while Scene::GoesOn().
#ifndef PRIVATEMAIL_TESTS_E2E_LOAD_CALLERS_H_
#define PRIVATEMAIL_TESTS_E2E_LOAD_CALLERS_H_

#include <atomic>
#include <cstdint>

#include "tests/e2e/load_scene.h"
#include "tests/e2e/writers.h"

namespace privatemail::e2e {

// Completed operations that consist of several calls.
struct Achievements {
  std::atomic<int64_t> builds = 0;
  std::atomic<int64_t> second_builds = 0;  // refused during the first
  std::atomic<int64_t> revoked_keys = 0;   // called before, during and after
  std::atomic<int64_t> certificates = 0;   // seen by a new connection
  std::atomic<int64_t> snapshots = 0;      // restored under another name
};

// Searches of every kind with its own key, and checks of their answers.
void Search(Scene* scene, int number);

// Upserts, deletions and reads.
void WriteAndRead(Scene* scene, Writer* writer, int number);

// Builds "things", and requests a second build during the first.
void Build(Scene* scene, Achievements* achievements);

// Restores a snapshot of "things" as another collection and deletes that.
void SnapshotAndRestore(Scene* scene, Achievements* achievements);

// Creates a key and revokes it while its holder calls.
void ChangeKeys(Scene* scene, Achievements* achievements);

// Replaces the certificate, which only new connections see.
void ChangeCertificates(Scene* scene, Achievements* achievements);

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_LOAD_CALLERS_H_
