// The processes that mpirun has started. The only place that knows MPI.
#ifndef PRIVATEMAIL_SERVER_MPI_RANKS_H_
#define PRIVATEMAIL_SERVER_MPI_RANKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/numerics/row_share.h"

namespace privatemail::server {

// One of them, all of which make the same calls in the same order. A rank that dies, and a network
// that fails, end all of them: nothing here waits for who is gone. One thread uses it.
class Ranks {
 public:
  // At most one in a process. Without mpirun there is one rank.
  Ranks(int* argc, char*** argv);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // OK when `own` is OK in every rank; otherwise the lowest rank's that is not, "rank 2 of 3: ...".
  // Once it was not OK, it is that for ever, without asking anyone.
  absl::Status Agree(const absl::Status& own) const;

  // Agrees that all is well, and gives everyone what each rank has to say: some kilobytes.
  absl::StatusOr<std::vector<std::string>> Exchange(const std::string& own) const;

  // This rank's of n rows, all of which refer to this. Each has as many groups as any other, give
  // or take one. INVALID_ARGUMENT: there are more ranks than groups.
  absl::StatusOr<std::shared_ptr<const RowShare>> Share(Eigen::Index rows) const;

  // From any rank but 0 to rank 0, which takes messages of less than 2 GiB one after the other.
  void Send(const std::string& message) const;
  std::string Receive(int from) const;

  // Ends all ranks at once, this one with exit code 1.
  [[noreturn]] static void Abort();

 private:
  int rank_ = 0;
  int size_ = 1;
  mutable absl::Status failure_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_MPI_RANKS_H_
