// Threads in the role of the processes that share rows.
#ifndef PRIVATEMAIL_TESTS_TESTING_THREADED_ROWS_H_
#define PRIVATEMAIL_TESTS_TESTING_THREADED_ROWS_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/numerics/row_share.h"

namespace privatemail::testing {

// State shared by the parties. Each contributes a status and its vectors and waits for the others.
class ThreadedRows {
 public:
  ThreadedRows(Eigen::Index rows, int parties) : groups_(rows), parties_(parties) {}

  // The share of one party; keeps a reference to this.
  std::shared_ptr<const RowShare> Share(int party) {
    const auto border = [&](int which) { return which * groups_.count() / parties_; };
    return std::make_shared<Part>(this, party, border(party), border(party + 1));
  }

  // Calls run(party) in one thread per party.
  template <typename Run>
  void ForAll(Run run) {
    std::vector<std::thread> threads;
    for (int party = 0; party < parties_; ++party) threads.emplace_back(run, party);
    for (std::thread& one : threads) one.join();
  }

 private:
  class Part final : public RowShare {
   public:
    Part(ThreadedRows* all, int party, int first_group, int end_group)
        : RowShare(all->groups_, first_group, end_group), all_(*all), party_(party) {}

    absl::Status Agree(const absl::Status& own) const override {
      return all_.Meet(party_, own, {}, nullptr);
    }
    absl::Status AddUp(const absl::Status& own, absl::Span<const Vector> of_groups,
                       Vector* total) const override {
      return all_.Meet(party_, own, {of_groups.begin(), of_groups.end()}, total);
    }

   private:
    ThreadedRows& all_;
    const int party_;
  };

  struct Meeting {
    explicit Meeting(int parties) : statuses(parties), vectors(parties) {}

    std::vector<absl::Status> statuses;
    std::vector<std::vector<Vector>> vectors;
    int arrived = 0;
  };

  absl::Status Meet(int party, const absl::Status& own, std::vector<Vector> vectors,
                    Vector* total) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!failure_.ok()) return failure_;
    if (meeting_ == nullptr) meeting_ = std::make_shared<Meeting>(parties_);
    const std::shared_ptr<Meeting> meeting = meeting_;
    meeting->statuses[party] = own;
    meeting->vectors[party] = std::move(vectors);
    if (++meeting->arrived == parties_) {
      for (const absl::Status& one : meeting->statuses) failure_.Update(one);
      meeting_ = nullptr;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return meeting->arrived == parties_; });
    if (!failure_.ok() || total == nullptr) return failure_;
    total->setZero();
    for (const std::vector<Vector>& of_party : meeting->vectors) {
      for (const Vector& one : of_party) *total += one;
    }
    return absl::OkStatus();
  }

  const RowGroups groups_;
  const int parties_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Meeting> meeting_;  // incomplete
  absl::Status failure_;
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_TESTING_THREADED_ROWS_H_
