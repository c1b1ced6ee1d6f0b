#include "common/base/low_priority.h"

#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

namespace privatemail {
namespace {

int Niceness() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

TEST(AtLowPriority, IsTheWorkAndWhatItStartsButNotTheCaller) {
  const int before = Niceness();
  int of_work = 0, of_its_thread = 0;
  AtLowPriority([&] {
    of_work = Niceness();
    std::thread([&] { of_its_thread = Niceness(); }).join();
  });
  EXPECT_EQ(of_work, std::min(before + 10, 19));
  EXPECT_EQ(of_its_thread, of_work);
  EXPECT_EQ(Niceness(), before);
}

TEST(AtLowPriority, ThrowsWhatTheWorkThrows) {
  EXPECT_THROW(AtLowPriority([] { throw std::runtime_error("why"); }), std::runtime_error);
}

}  // namespace
}  // namespace privatemail
