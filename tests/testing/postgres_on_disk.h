// A PostgreSQL server on a simulated disk that loses power, ignores syncs or is full.
#ifndef PRIVATEMAIL_TESTS_TESTING_POSTGRES_ON_DISK_H_
#define PRIVATEMAIL_TESTS_TESTING_POSTGRES_ON_DISK_H_

#include "tests/testing/postgres_server.h"
#include "tests/testing/synced_files.h"

namespace privatemail {

// PostgresServer on SyncedFiles. Page checksums detect torn pages that recovery does not repair; 1
// MiB log segments make checkpoints frequent.
class PostgresOnDisk {
 public:
  PostgresOnDisk() { Start(); }

  PostgresServer& server() { return server_; }
  SyncedFiles& disk() { return disk_; }

  // Launches the server and waits for the end of its recovery.
  void Start() {
    Launch();
    server_.WaitForAnswer();
  }
  // Launches without waiting.
  void Launch() {
    server_.Launch({"-c", "min_wal_size=2MB", "-c", "max_wal_size=2MB"}, disk_.environment());
  }
  // Cuts the power of server and disk, and waits until nothing runs.
  void LosePower(const PowerLoss& loss) {
    disk_.Stop();
    server_.Kill();
    disk_.Cut(loss);
  }

 private:
  PostgresServer server_{{"--data-checksums", "--wal-segsize=1"}};
  SyncedFiles disk_{server_.data_folder()};
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_POSTGRES_ON_DISK_H_
