// A daemon with everybody at work until something ends it, and what must be there afterwards.
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

// Three writers upsert and delete, a builder builds and a fourth caller takes snapshots and
// restores them; all remember what the server acknowledged.
class AtWork : public Service {
 protected:
  // A file for --postgres-file, and the flags that make the daemon use it.
  void UsePostgres(const std::string& conninfo);
  // A daemon over `data` in the folder, without TLS.
  void Start();
  // SIGKILL; gone when it returns.
  void End();
  // Start, the collection "things", some writes of each writer, and a build.
  void Prepare();

  // Everybody is at work when `strike` ends what they work with, after so long at most.
  void WorkUntil(const std::function<void()>& strike, unsigned most_microseconds = 400'000);

  // Compares what the daemon answers with what was acknowledged: items, builds, copies, and that a
  // search for all that is embedded finds nothing that was deleted. What was under way must be
  // there as a whole or not at all, and is settled then. Returns what is wrong, a line each.
  std::vector<std::string> Faults();
  // The same, each a failure of the test.
  void Check();

  // One line of what was tried `times` times, which losses fail.
  void Report(const std::string& what, int times) const;

  std::mt19937 bits_{17};
  std::vector<std::string> flags_;
  std::vector<Writer> writers_;

 private:
  void BuildUntilFailure(const Transport& transport);
  void BuildOnce();
  std::vector<std::string> SearchFaults(const Transport& transport,
                                        const v1::GetCollectionResponse& things,
                                        const Stored& stored) const;

  Snapshotter snapshotter_{"things"};
  uint64_t acknowledged_version_ = 0;
  int64_t builds_ = 0;
  int64_t losses_ = 0;
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_AT_WORK_H_
