// Fixture of crash tests: a daemon under concurrent work that is killed, and a check of its data.
#ifndef PRIVATEMAIL_TESTS_E2E_AT_WORK_H_
#define PRIVATEMAIL_TESTS_E2E_AT_WORK_H_

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/e2e/service.h"
#include "tests/e2e/snapshotter.h"
#include "tests/e2e/writers.h"

namespace privatemail::e2e {

// Three writers upsert and delete, a builder builds, and a fourth caller takes and restores
// snapshots; all record what the server acknowledged.
class AtWork : public Service {
 protected:
  // Makes later daemons store in this PostgreSQL database.
  void UsePostgres(const std::string& conninfo);
  // Starts a daemon without TLS on `data` in the folder.
  void Start();
  // Sends SIGKILL and waits for the end.
  void End();
  // Starts, creates the collection "things" with every scheme but cells, writes with each writer,
  // and builds.
  void Prepare();

  // Runs all callers and calls `strike`, which ends their server, after a random time.
  void WorkUntil(const std::function<void()>& strike, unsigned max_microseconds = 400'000);

  // Compares items, builds, copies, a search for all embedded items and an encrypted search for all
  // items with what was acknowledged.
  // A call in flight must have been applied as a whole or not at all; it is settled then. Returns
  // a line for each difference.
  std::vector<std::string> Faults();
  // Fails the test for each of Faults().
  void Check();

  // Prints one line of totals; fails the test if anything was lost.
  void Report(const std::string& what, int times) const;

  std::mt19937 bits_{17};
  std::vector<std::string> flags_;
  std::vector<Writer> writers_;

 private:
  void BuildUntilFailure(const AdminClient& transport);
  void BuildOnce();
  std::vector<std::string> SearchFaults(const AdminClient& transport,
                                        const v1::GetCollectionResponse& things,
                                        const Stored& stored) const;
  std::vector<std::string> EncryptedFaults(const Stored& stored) const;

  Snapshotter snapshotter_{"things"};
  uint64_t acknowledged_version_ = 0;
  int64_t builds_ = 0;
  int64_t losses_ = 0;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_AT_WORK_H_
