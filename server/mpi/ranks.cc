#include "server/mpi/ranks.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/mpi/watchdog.h"

namespace privatemail::server {
namespace {

// Values per pipelined message: 64 KiB.
constexpr Eigen::Index kPassedAtOnce = 8192;

// Callers keep within int, in which MPI counts. MPI errors end the program.
int Count(size_t count) { return static_cast<int>(count); }

}  // namespace

class Ranks::Rows final : public RowShare {
 public:
  Rows(const Ranks& ranks, const RowGroups& groups)
      : RowShare(groups, Border(ranks, groups, ranks.rank()),
                 Border(ranks, groups, ranks.rank() + 1)),
        ranks_(ranks) {}

  absl::Status Agree(const absl::Status& own) const override { return ranks_.Agree(own); }

  // From rank to rank, so that sums are added in order and no rank holds all of them; the last rank
  // broadcasts the total.
  absl::Status AddUp(const absl::Status& own, absl::Span<const Vector> of_groups,
                     Vector* total) const override {
    PM_RETURN_IF_ERROR(ranks_.Agree(own));
    Watchdog& watchdog = *ranks_.watchdog_;
    const int rank = ranks_.rank(), last = ranks_.size() - 1;
    for (Eigen::Index at = 0; at < total->size(); at += kPassedAtOnce) {
      const Eigen::Index count = std::min(kPassedAtOnce, total->size() - at);
      auto part = total->segment(at, count);
      part.setZero();
      if (rank > 0) {
        watchdog.Complete([&](MPI_Request* request) {
          MPI_Irecv(part.data(), Count(count), MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, request);
        });
      }
      for (const Vector& one : of_groups) part += one.segment(at, count);
      if (rank < last) {
        watchdog.Complete([&](MPI_Request* request) {
          MPI_Isend(part.data(), Count(count), MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD, request);
        });
      }
    }
    watchdog.Complete([&](MPI_Request* request) {
      MPI_Ibcast(total->data(), Count(total->size()), MPI_DOUBLE, last, MPI_COMM_WORLD, request);
    });
    return absl::OkStatus();
  }

 private:
  static int Border(const Ranks& ranks, const RowGroups& groups, int rank) {
    return rank * groups.count() / ranks.size();
  }

  const Ranks& ranks_;
};

// Counts the blocks that are read as work.
class Ranks::WatchedPoints final : public PointSource {
 public:
  WatchedPoints(Watchdog* watchdog, std::shared_ptr<const PointSource> points)
      : watchdog_(*watchdog), points_(std::move(points)) {
    watchdog_.BeginWork();
  }
  ~WatchedPoints() override { watchdog_.EndWork(); }

  Eigen::Index rows() const override { return points_->rows(); }
  Eigen::Index cols() const override { return points_->cols(); }
  absl::Status Read(Eigen::Index first, Matrix* block) const override {
    watchdog_.CountWork();
    return points_->Read(first, block);
  }

 private:
  Watchdog& watchdog_;
  const std::shared_ptr<const PointSource> points_;
};

Ranks::Ranks(int* argc, char*** argv) {
  // Other threads compute; of MPI only this one and the watchdog's are users, never at once.
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    std::fprintf(stderr,
                 "privatemaild-embed: MPI must allow calls of several threads in turn "
                 "(MPI_THREAD_SERIALIZED), but offers level %d\n",
                 provided);
    Abort();
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  watchdog_ = std::make_unique<Watchdog>(rank_, size_);
}

Ranks::~Ranks() = default;

void Ranks::Broadcast(std::string* text, int from) const {
  auto size = static_cast<long long>(text->size());
  watchdog_->Complete([&](MPI_Request* request) {
    MPI_Ibcast(&size, 1, MPI_LONG_LONG, from, MPI_COMM_WORLD, request);
  });
  text->resize(static_cast<size_t>(size));
  watchdog_->Complete([&](MPI_Request* request) {
    MPI_Ibcast(text->data(), Count(text->size()), MPI_CHAR, from, MPI_COMM_WORLD, request);
  });
}

absl::Status Ranks::Agree(const absl::Status& own) const {
  if (!failure_.ok()) return failure_;
  const int mine = own.ok() ? size_ : rank_;
  int first = size_;
  watchdog_->Complete([&](MPI_Request* request) {
    MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, request);
  });
  if (first == size_) return absl::OkStatus();
  int code = static_cast<int>(own.code());
  watchdog_->Complete(
      [&](MPI_Request* request) { MPI_Ibcast(&code, 1, MPI_INT, first, MPI_COMM_WORLD, request); });
  std::string message(own.message());
  Broadcast(&message, first);
  failure_ = absl::Status(static_cast<absl::StatusCode>(code),
                          absl::StrCat("rank ", first, " of ", size_, ": ", message));
  return failure_;
}

absl::StatusOr<std::vector<std::string>> Ranks::Exchange(const std::string& own) const {
  PM_RETURN_IF_ERROR(Agree(absl::OkStatus()));
  std::vector<std::string> all;
  for (int rank = 0; rank < size_; ++rank) {
    all.push_back(rank == rank_ ? own : "");
    Broadcast(&all.back(), rank);
  }
  return all;
}

absl::StatusOr<std::shared_ptr<const RowShare>> Ranks::Share(Eigen::Index rows) const {
  const RowGroups groups(rows);
  if (size_ > groups.count()) {
    return absl::InvalidArgumentError(absl::StrCat("mpirun -n must be at most ", groups.count(),
                                                   " for ", rows, " rows, but is ", size_));
  }
  return std::make_shared<Rows>(*this, groups);
}

std::shared_ptr<const PointSource> Ranks::Watched(std::shared_ptr<const PointSource> points) const {
  return std::make_shared<WatchedPoints>(watchdog_.get(), std::move(points));
}

void Ranks::Send(const std::string& message) const {
  auto size = static_cast<long long>(message.size());
  watchdog_->Complete([&](MPI_Request* request) {
    MPI_Isend(&size, 1, MPI_LONG_LONG, 0, 0, MPI_COMM_WORLD, request);
  });
  watchdog_->Complete([&](MPI_Request* request) {
    MPI_Isend(message.data(), Count(message.size()), MPI_CHAR, 0, 0, MPI_COMM_WORLD, request);
  });
}

std::string Ranks::Receive(int from) const {
  long long size = 0;
  watchdog_->Complete([&](MPI_Request* request) {
    MPI_Irecv(&size, 1, MPI_LONG_LONG, from, 0, MPI_COMM_WORLD, request);
  });
  std::string message(static_cast<size_t>(size), '\0');
  watchdog_->Complete([&](MPI_Request* request) {
    MPI_Irecv(message.data(), Count(message.size()), MPI_CHAR, from, 0, MPI_COMM_WORLD, request);
  });
  return message;
}

void Ranks::Abort() {
  std::_Exit(1);  // mpirun ends the others; MPI_Abort could meet a call of the watchdog
}

}  // namespace privatemail::server
