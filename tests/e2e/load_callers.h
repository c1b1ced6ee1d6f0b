// The callers of a load. Each function calls, in a thread of its own, as long as the scene goes on.
#ifndef PRIVATEMAIL_TESTS_E2E_LOAD_CALLERS_H_
#define PRIVATEMAIL_TESTS_E2E_LOAD_CALLERS_H_

#include <atomic>
#include <cstdint>

#include "tests/e2e/load_scene.h"
#include "tests/e2e/writers.h"

namespace privatemail::e2e {

// What was done beside calls that are only counted.
struct Achievements {
  std::atomic<int64_t> builds = 0;
  std::atomic<int64_t> second_builds = 0;  // refused, because the first went on
  std::atomic<int64_t> revoked_keys = 0;   // with calls before, during and after
  std::atomic<int64_t> certificates = 0;   // seen by a new connection
  std::atomic<int64_t> snapshots = 0;      // restored under another name
};

// With a key of its own: searches of every kind, whose answers are looked at, and what a searcher
// asks before.
void Search(Scene* scene, int number);

// Upserts and deletions that the writer remembers, and reads of what is stored.
void WriteAndRead(Scene* scene, Writer* writer, int number);

// Builds "things" again and again, and again while it is being built.
void Build(Scene* scene, Achievements* achievements);

// Snapshots "things" and restores it into another collection, which is deleted.
void SnapshotAndRestore(Scene* scene, Achievements* achievements);

// Makes a key and revokes it while its holder calls.
void ChangeKeys(Scene* scene, Achievements* achievements);

// Replaces the certificate, which new connections must see and others must not notice.
void ChangeCertificates(Scene* scene, Achievements* achievements);

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_LOAD_CALLERS_H_
