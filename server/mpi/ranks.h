// The MPI ranks of a job.
#ifndef PRIVATEMAIL_SERVER_MPI_RANKS_H_
#define PRIVATEMAIL_SERVER_MPI_RANKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/numerics/point_source.h"
#include "common/numerics/row_share.h"

namespace privatemail::server {

class Watchdog;

// One rank. All ranks make the same calls in the same order. If a rank or the network fails, MPI
// ends all of them; if one stalls, the Watchdog of another does. Not thread-safe.
class Ranks {
 public:
  // At most one in a process. Without mpirun there is one rank.
  Ranks(int* argc, char*** argv);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // OK if `own` is OK in every rank; otherwise the error of the lowest rank, "rank 2 of 3: ...",
  // which all later calls return without communication.
  absl::Status Agree(const absl::Status& own) const;

  // Agree(OK), then an all-gather of some kilobytes.
  absl::StatusOr<std::vector<std::string>> Exchange(const std::string& own) const;

  // This rank's share of the rows, balanced to one group; it refers to this object.
  // INVALID_ARGUMENT: more ranks than groups.
  absl::StatusOr<std::shared_ptr<const RowShare>> Share(Eigen::Index rows) const;

  // These points; until it is destroyed, the job ends if this rank reads none of them for long,
  // unless it waits for other ranks.
  std::shared_ptr<const PointSource> Watched(std::shared_ptr<const PointSource> points) const;

  // From another rank to rank 0, less than 2 GiB a message.
  void Send(const std::string& message) const;
  std::string Receive(int from) const;

  // Ends all ranks at once, this one with exit code 1.
  [[noreturn]] static void Abort();

 private:
  class Rows;
  class WatchedPoints;

  void Broadcast(std::string* text, int from) const;

  int rank_ = 0;
  int size_ = 1;
  mutable absl::Status failure_;
  std::unique_ptr<Watchdog> watchdog_;  // ends MPI
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_MPI_RANKS_H_
