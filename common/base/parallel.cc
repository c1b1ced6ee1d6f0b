#include "common/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

namespace privatemail {

void ParallelFor(int count, absl::FunctionRef<void(int)> task) {
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) task(i);
  };
  const int helpers = std::min<int>(std::thread::hardware_concurrency(), count) - 1;
  std::vector<std::future<void>> others;
  for (int i = 0; i < helpers; ++i) {
    try {
      others.push_back(std::async(std::launch::async, work));
    } catch (const std::system_error&) {
      break;
    }
  }
  // The futures' destructors wait for the others, also when this thread's share throws.
  work();
  for (auto& other : others) other.get();
}

}  // namespace privatemail
