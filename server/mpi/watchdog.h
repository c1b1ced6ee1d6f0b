// The detection of stalled ranks; includes MPI.
#ifndef PRIVATEMAIL_SERVER_MPI_WATCHDOG_H_
#define PRIVATEMAIL_SERVER_MPI_WATCHDOG_H_

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "absl/functional/function_ref.h"

namespace privatemail::server {

// A thread that sends a heartbeat to the next rank every second and expects those of the previous
// one. It prints a message and ends all ranks, with exit code 1, when
//   - the previous rank has sent none for kMaxSilentBeats seconds: it is stopped or unreachable
//   - this rank has work, but for as long has neither finished a part nor used the processor
//   - another rank does not reach the end of the job for as long after this one
// Seconds are beats of this thread, so that a machine that was suspended as a whole goes on. A slow
// rank is not taken for a stalled one: its thread needs a moment every kMaxSilentBeats seconds.
class Watchdog {
 public:
  // With the seconds that mpirun takes to end the others, a job ends within 30 s.
  static constexpr int kMaxSilentBeats = 15;

  // After MPI_Init_thread with MPI_THREAD_SERIALIZED; all other calls of MPI are made in Complete.
  Watchdog(int rank, int size);
  // Calls MPI_Finalize.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Starts an operation of MPI that does not block, and waits for its end without occupying the
  // core.
  void Complete(absl::FunctionRef<void(MPI_Request*)> start);

  // Between BeginWork and EndWork CountWork is called, by any thread, for each part of the work.
  void BeginWork() { working_ = true; }
  void CountWork() { ++work_; }
  void EndWork() { working_ = false; }

 private:
  enum class State { kRunning, kFinalizing, kEnded };

  void Run();
  // True if the previous rank was heard. The mutex is held.
  bool ExchangeHeartbeats();
  // Whether this rank has worked, or need not, since the last call.
  bool Works();

  const int rank_;
  const int size_;
  MPI_Comm ring_ = MPI_COMM_NULL;
  char beat_ = 0;
  char heard_ = 0;
  MPI_Request send_ = MPI_REQUEST_NULL;
  MPI_Request receive_ = MPI_REQUEST_NULL;

  std::atomic<bool> working_ = false;
  std::atomic<int64_t> work_ = 0;
  int64_t work_seen_ = 0;
  int64_t processor_seen_ = 0;

  std::mutex mutex_;  // of all calls of MPI, and of state_
  std::condition_variable changed_;
  State state_ = State::kRunning;
  std::thread thread_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_MPI_WATCHDOG_H_
