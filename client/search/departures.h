// The times at which messages leave after a search.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_DEPARTURES_H_
#define PRIVATEMAIL_CLIENT_SEARCH_DEPARTURES_H_

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "client/schemes/search_interval.h"

namespace privatemail::client {

// The first multiple of the interval after `arrived`, not 0, that is not before `now`: a message
// that leaves then does not reveal how long it took to compute.
std::chrono::steady_clock::time_point NextDeparture(std::chrono::steady_clock::time_point arrived,
                                                    std::chrono::steady_clock::time_point now,
                                                    std::chrono::milliseconds interval);

// The schedule of one client. Thread-safe.
class Departures {
 public:
  // Sleeps until the next departure; returns at once before the first answer.
  // CANCELLED: is_cancelled, which is polled.
  absl::Status Wait(const std::function<bool()>& is_cancelled);

  // The last answer arrived.
  void NoteArrival();

  // A search, during its life. While searches overlap, the longest interval holds.
  class Search {
   public:
    explicit Search(Departures& departures);
    ~Search();
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;
    // Before the answers are read.
    void SetWork(const SearchWork& work);

   private:
    Departures& departures_;
  };

 private:
  std::mutex mutex_;  // guards the following
  std::optional<std::chrono::steady_clock::time_point> arrived_;
  std::chrono::milliseconds interval_ = SearchInterval({});
  int searches_ = 0;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_DEPARTURES_H_
