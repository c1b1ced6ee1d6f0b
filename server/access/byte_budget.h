// Bytes that several calls share.
#ifndef PRIVATEMAIL_SERVER_ACCESS_BYTE_BUDGET_H_
#define PRIVATEMAIL_SERVER_ACCESS_BYTE_BUDGET_H_

#include <cstdint>
#include <mutex>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace privatemail::server {

// Counts what is taken of a limit that each call has of itself alone if it is not counted: disk
// space, for one. Thread-safe.
class ByteBudget {
 public:
  // `what` and `setting` are named by errors as CheckLimit (limits.h) names them; both must outlive
  // the budget.
  ByteBudget(absl::string_view what, absl::string_view setting) : what_(what), setting_(setting) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // What one call has taken; given back on destruction. The budget must outlive it. Not
  // thread-safe.
  class Share {
   public:
    explicit Share(ByteBudget* budget) : budget_(budget) {}
    ~Share() { GiveBack(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // RESOURCE_EXHAUSTED naming limit and value: all shares together would have more than `limit`.
    // Then nothing more is taken. bytes >= 0.
    absl::Status Take(int64_t bytes, int64_t limit);

    // Everything that was taken.
    void GiveBack();

    // The same for bytes that are to be taken later, without taking any.
    absl::Status Check(int64_t bytes, int64_t limit) const;

   private:
    ByteBudget* const budget_;
    int64_t taken_ = 0;
  };

 private:
  const absl::string_view what_;
  const absl::string_view setting_;
  mutable std::mutex mutex_;  // guards taken_
  int64_t taken_ = 0;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_BYTE_BUDGET_H_
