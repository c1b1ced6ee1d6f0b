#include "server/mpi/watchdog.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace privatemail::server {
namespace {

constexpr std::chrono::seconds kBeat(1);
// Short waits, as for sums, poll at once; longer ones leave the core to those that compute.
constexpr int kPollsAtOnce = 100;
constexpr std::chrono::microseconds kPause(50);  // grows by as much with each poll
constexpr std::chrono::microseconds kMaxPause(2000);

// The interval of a beat; the watchdog itself takes a tenth of it.
constexpr int64_t kWorkNanoseconds = 2'000'000;

int64_t ProcessorNanoseconds() {
  timespec used = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

Watchdog::Watchdog(int rank, int size) : rank_(rank), size_(size) {
  if (size > 1) {
    MPI_Comm_dup(MPI_COMM_WORLD, &ring_);
    MPI_Irecv(&heard_, 1, MPI_CHAR, (rank + size - 1) % size, 0, ring_, &receive_);
  }
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "watchdog");
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    state_ = State::kFinalizing;
    if (receive_ != MPI_REQUEST_NULL) {
      MPI_Cancel(&receive_);
      MPI_Wait(&receive_, MPI_STATUS_IGNORE);
    }
    if (send_ != MPI_REQUEST_NULL) MPI_Request_free(&send_);
  }
  MPI_Finalize();
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    state_ = State::kEnded;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::Complete(absl::FunctionRef<void(MPI_Request*)> start) {
  MPI_Request request = MPI_REQUEST_NULL;
  int done = 0;
  for (int polls = 0; done == 0; ++polls) {
    if (polls > kPollsAtOnce) {
      std::this_thread::sleep_for(std::min((polls - kPollsAtOnce) * kPause, kMaxPause));
    } else if (polls > 0) {
      std::this_thread::yield();
    }
    CountWork();
    const std::lock_guard<std::mutex> guard(mutex_);
    if (polls == 0) start(&request);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
}

bool Watchdog::ExchangeHeartbeats() {
  if (size_ == 1) return true;
  int sent = 0;
  MPI_Test(&send_, &sent, MPI_STATUS_IGNORE);
  if (sent != 0) MPI_Isend(&beat_, 1, MPI_CHAR, (rank_ + 1) % size_, 0, ring_, &send_);
  bool heard = false;
  for (int received = 1; received != 0; heard |= received != 0) {
    MPI_Test(&receive_, &received, MPI_STATUS_IGNORE);
    if (received == 0) continue;
    MPI_Irecv(&heard_, 1, MPI_CHAR, (rank_ + size_ - 1) % size_, 0, ring_, &receive_);
  }
  return heard;
}

bool Watchdog::Works() {
  const int64_t before = std::exchange(work_seen_, work_.load());
  const int64_t used_before = std::exchange(processor_seen_, ProcessorNanoseconds());
  return !working_ || work_seen_ != before || processor_seen_ - used_before > kWorkNanoseconds;
}

void Watchdog::Run() {
  int silent = 0, idle = 0, finalizing = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, kBeat, [this] { return state_ == State::kEnded; })) {
    if (state_ == State::kFinalizing) {
      if (++finalizing < kMaxSilentBeats) continue;
      std::fprintf(stderr,
                   "privatemaild-embed: rank %d of %d is done, but expected the others to end "
                   "within %d s: one has stalled\n",
                   rank_, size_, kMaxSilentBeats);
      std::_Exit(1);  // MPI_Finalize is running; mpirun ends the others
    }
    silent = ExchangeHeartbeats() ? 0 : silent + 1;
    idle = Works() ? 0 : idle + 1;
    if (silent < kMaxSilentBeats && idle < kMaxSilentBeats) continue;
    if (idle >= kMaxSilentBeats) {
      std::fprintf(stderr,
                   "privatemaild-embed: rank %d of %d has stalled: it should have finished some "
                   "rows of its share, but finished none for %d s; the job ends\n",
                   rank_, size_, kMaxSilentBeats);
      std::_Exit(1);  // MPI_Abort needs threads that may hang as well; mpirun ends the others
    }
    std::fprintf(
        stderr,
        "privatemaild-embed: rank %d of %d has stalled: rank %d expected a heartbeat every "
        "second, but got none for %d s; the job ends\n",
        (rank_ + size_ - 1) % size_, size_, rank_, kMaxSilentBeats);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::_Exit(1);
  }
}

}  // namespace privatemail::server
