#include "server/mpi/ranks.h"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

// Values per pipelined message: 64 KiB.
constexpr Eigen::Index kPassedAtOnce = 8192;

// Callers keep within int, in which MPI counts. MPI errors end the program.
int Count(size_t count) { return static_cast<int>(count); }

void Broadcast(std::string* text, int from) {
  auto size = static_cast<long long>(text->size());
  MPI_Bcast(&size, 1, MPI_LONG_LONG, from, MPI_COMM_WORLD);
  text->resize(static_cast<size_t>(size));
  MPI_Bcast(text->data(), Count(text->size()), MPI_CHAR, from, MPI_COMM_WORLD);
}

class RankRows final : public RowShare {
 public:
  RankRows(const Ranks& ranks, const RowGroups& groups)
      : RowShare(groups, Border(ranks, groups, ranks.rank()),
                 Border(ranks, groups, ranks.rank() + 1)),
        ranks_(ranks) {}

  absl::Status Agree(const absl::Status& own) const override { return ranks_.Agree(own); }

  // From rank to rank, so that sums are added in order and no rank holds all of them; the last rank
  // broadcasts the total.
  absl::Status AddUp(const absl::Status& own, absl::Span<const Vector> of_groups,
                     Vector* total) const override {
    PM_RETURN_IF_ERROR(ranks_.Agree(own));
    const int last = ranks_.size() - 1;
    for (Eigen::Index at = 0; at < total->size(); at += kPassedAtOnce) {
      const Eigen::Index count = std::min(kPassedAtOnce, total->size() - at);
      auto part = total->segment(at, count);
      part.setZero();
      if (ranks_.rank() > 0) {
        MPI_Recv(part.data(), Count(count), MPI_DOUBLE, ranks_.rank() - 1, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      }
      for (const Vector& one : of_groups) part += one.segment(at, count);
      if (ranks_.rank() < last) {
        MPI_Send(part.data(), Count(count), MPI_DOUBLE, ranks_.rank() + 1, 0, MPI_COMM_WORLD);
      }
    }
    MPI_Bcast(total->data(), Count(total->size()), MPI_DOUBLE, last, MPI_COMM_WORLD);
    return absl::OkStatus();
  }

 private:
  static int Border(const Ranks& ranks, const RowGroups& groups, int rank) {
    return rank * groups.count() / ranks.size();
  }

  const Ranks& ranks_;
};

}  // namespace

Ranks::Ranks(int* argc, char*** argv) {
  // Other threads compute, but only this one calls MPI.
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

Ranks::~Ranks() { MPI_Finalize(); }

absl::Status Ranks::Agree(const absl::Status& own) const {
  if (!failure_.ok()) return failure_;
  const int mine = own.ok() ? size_ : rank_;
  int first = size_;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == size_) return absl::OkStatus();
  int code = static_cast<int>(own.code());
  MPI_Bcast(&code, 1, MPI_INT, first, MPI_COMM_WORLD);
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
  return std::make_shared<RankRows>(*this, groups);
}

void Ranks::Send(const std::string& message) const {
  MPI_Send(message.data(), Count(message.size()), MPI_CHAR, 0, 0, MPI_COMM_WORLD);
}

std::string Ranks::Receive(int from) const {
  MPI_Status status;
  MPI_Probe(from, 0, MPI_COMM_WORLD, &status);
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  std::string message(static_cast<size_t>(size), '\0');
  MPI_Recv(message.data(), size, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return message;
}

void Ranks::Abort() {
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

}  // namespace privatemail::server
