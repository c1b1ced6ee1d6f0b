// A background thread that loads the encrypted rows of collections.
#ifndef PRIVATEMAIL_SERVER_ENGINE_ROWS_LOADER_H_
#define PRIVATEMAIL_SERVER_ENGINE_ROWS_LOADER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/embedding/public_parameters.h"
#include "server/engine/collection_view.h"
#include "server/engine/encrypted_collection.h"
#include "server/store/store.h"

namespace privatemail::server {

// Loads one collection at a time, that of the fewest items first, and tries again after a failure.
// Its priority is normal, because searches of a collection are refused until its rows are loaded.
// Thread-safe.
class RowsLoader {
 public:
  using Warn = std::function<void(const std::string& message)>;

  // store: must outlive it. warn: may be empty; called from the thread, about the first of several
  // failures in a row to load a collection.
  RowsLoader(Store* store, Warn warn);
  ~RowsLoader();  // stops a running load after at most a part of the collection

  // Queues the rows of a collection with a dimension, unless they are loaded or queued already.
  void Add(const CollectionView& view);

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    std::weak_ptr<EncryptedCollection> rows;       // expires when the collection is removed
    std::shared_ptr<EncryptedCollection> running;  // the same, while they are loaded
    std::string name;
    PublicParameters parameters;
    uint64_t items = 0;
    Clock::time_point due = {};
    Clock::duration delay = {};  // before `due`; 0: it has not failed yet
  };

  void Run();
  // Takes the next job that is due. Null: stopped.
  std::unique_ptr<Job> Take();
  void Finish(std::unique_ptr<Job> job, const absl::Status& status, Clock::duration duration);

  Store* const store_;
  const Warn warn_;
  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Job>> waiting_;
  const EncryptedCollection* running_ = nullptr;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_ROWS_LOADER_H_
