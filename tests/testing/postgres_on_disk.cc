#include "tests/testing/postgres_on_disk.h"

namespace privatemail {

PostgresOnDisk::PostgresOnDisk() { Start(); }

void PostgresOnDisk::Start() {
  Launch();
  server_.WaitForAnswer();
}

void PostgresOnDisk::Launch() {
  server_.Launch({"-c", "min_wal_size=2MB", "-c", "max_wal_size=2MB"}, disk_.environment());
}

// Acknowledgements after Stop are of syncs before it.
void PostgresOnDisk::LosePower(const PowerLoss& loss) {
  disk_.Stop();
  server_.Kill();
  disk_.Cut(loss);
}

}  // namespace privatemail
