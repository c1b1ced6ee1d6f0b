// A PostgreSQL server on a disk that loses power, lies or is full.
#ifndef PRIVATEMAIL_TESTS_TESTING_POSTGRES_ON_DISK_H_
#define PRIVATEMAIL_TESTS_TESTING_POSTGRES_ON_DISK_H_

#include "tests/testing/postgres_server.h"
#include "tests/testing/synced_files.h"

namespace privatemail {

// PostgresServer over SyncedFiles. Its pages have checksums, so that a torn one that recovery does
// not mend is noticed; its log is in segments of 1 MiB, of which two make a checkpoint, so that
// there are many of both in a short life.
class PostgresOnDisk {
 public:
  PostgresOnDisk();

  PostgresServer& server() { return server_; }
  SyncedFiles& disk() { return disk_; }

  // Waits until it answers, which it does after recovery.
  void Start();
  // Without the wait, to lose power meanwhile.
  void Launch();
  // The power goes, of the server and its disk; nothing runs when it returns.
  void LosePower(const PowerLoss& loss);

 private:
  PostgresServer server_{{"--data-checksums", "--wal-segsize=1"}};
  SyncedFiles disk_{server_.data_folder()};
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_POSTGRES_ON_DISK_H_
