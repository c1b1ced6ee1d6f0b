// Fixtures: stores on a real PostgreSQL server, and a counter of watch callbacks.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_STORE_POSTGRES_FIXTURE_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_STORE_POSTGRES_FIXTURE_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "server/store/postgres/postgres_store.h"
#include "tests/testing/postgres_server.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {

inline std::unique_ptr<PostgresStore> OpenStore(const std::string& conninfo,
                                                const postgres::PoolOptions& options = {}) {
  auto store = PostgresStore::Open(conninfo, options);
  EXPECT_THAT(store, IsOk());
  return *std::move(store);
}

// Counts the callbacks of a watch.
class Counter {
 public:
  std::function<absl::Status()> callback() {
    return [this] {
      const std::lock_guard<std::mutex> guard(mutex_);
      ++calls_;
      changed_.notify_all();
      return absl::OkStatus();
    };
  }
  int calls() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return calls_;
  }
  bool WaitForMoreThan(int calls) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(5), [&] { return calls_ > calls; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0;
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_STORE_POSTGRES_FIXTURE_H_
