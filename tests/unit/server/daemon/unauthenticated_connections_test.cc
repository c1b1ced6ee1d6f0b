#include "server/daemon/unauthenticated_connections.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "tests/testing/wait_until.h"

namespace privatemail::server {
namespace {

using Clock = UnauthenticatedConnections::Clock;

// Both ends of a connection over loopback.
class Pair {
 public:
  Pair() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    caller_ = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(caller_, reinterpret_cast<sockaddr*>(&address), length), 0);
    server_ = ::accept(listener, nullptr, nullptr);
    ::close(listener);
  }
  ~Pair() {
    if (caller_ >= 0) ::close(caller_);
    ::close(server_);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  int server() const { return server_; }
  void Send(size_t bytes) {
    const std::vector<char> data(bytes);
    EXPECT_EQ(::write(caller_, data.data(), bytes), static_cast<ssize_t>(bytes));
  }
  void Close() { ::close(std::exchange(caller_, -1)); }
  // Whether the server's end was shut down.
  bool IsEnded() const {
    char byte = 0;
    return ::recv(server_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
  }

 private:
  int caller_ = -1;
  int server_ = -1;
};

sockaddr_storage Address(uint8_t last) {
  sockaddr_storage storage = {};
  auto& address = reinterpret_cast<sockaddr_in&>(storage);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x0a000000u + last);
  address.sin_port = htons(1000);
  return storage;
}

class UnauthenticatedConnectionsTest : public ::testing::Test {
 protected:
  uint64_t Add(const Pair& pair, uint8_t address = 1) {
    const std::optional<size_t> slot = connections_.Add(pair.server(), Address(address), now_);
    return slot.has_value() ? connections_.InSlot(*slot) : 0;
  }

  UnauthenticatedConnections connections_{
      {.slots = 3, .max_per_address = 2, .seconds = 10, .max_bytes = 1000, .max_calls = 5}};
  Clock::time_point now_ = Clock::now();
};

TEST_F(UnauthenticatedConnectionsTest, TooManyBytesEndConnection) {
  Pair quiet;
  Pair loud;
  const uint64_t first = Add(quiet);
  const uint64_t second = Add(loud);
  quiet.Send(1000);
  loud.Send(1001);
  EXPECT_TRUE(WaitUntil([&] { return connections_.EndExcessive(now_) == 1; }));
  EXPECT_TRUE(connections_.Contains(first));
  EXPECT_FALSE(connections_.Contains(second));
}

TEST_F(UnauthenticatedConnectionsTest, TooManyCallsEndConnectionAtOnce) {
  const Pair pair;
  const uint64_t connection = Add(pair);
  for (int i = 0; i < 5; ++i) connections_.CountCall(connection, now_);
  EXPECT_FALSE(pair.IsEnded());
  connections_.CountCall(connection, now_);
  EXPECT_TRUE(pair.IsEnded());
  EXPECT_TRUE(connections_.empty());
}

TEST_F(UnauthenticatedConnectionsTest, SilenceEndsConnectionButNotAuthenticatedOne) {
  const Pair silent;
  const Pair known;
  Add(silent);
  connections_.Authenticate(Add(known));
  EXPECT_EQ(connections_.EndExcessive(now_ + std::chrono::seconds(10)), 0);
  EXPECT_EQ(connections_.EndExcessive(now_ + std::chrono::seconds(11)), 1);
  EXPECT_TRUE(silent.IsEnded());
  EXPECT_FALSE(known.IsEnded());
}

TEST_F(UnauthenticatedConnectionsTest, AddressHasLimitAndNewcomersReplaceItsOldest) {
  const Pair one, two, three, four, five;
  const uint64_t first = Add(one, 1);
  EXPECT_NE(Add(two, 1), 0u);
  EXPECT_EQ(Add(three, 1), 0u);
  EXPECT_NE(Add(four, 2), 0u);
  EXPECT_NE(Add(five, 3), 0u) << "no slot is free";
  EXPECT_TRUE(one.IsEnded());
  EXPECT_FALSE(connections_.Contains(first));
  EXPECT_FALSE(four.IsEnded());
}

TEST_F(UnauthenticatedConnectionsTest, FailedConnectionsCloseAddressForAWhile) {
  int failed = 0;
  for (; failed < 1000; ++failed) {
    Pair pair;
    if (Add(pair) == 0) break;
    pair.Send(950);  // .95 of the limit
    pair.Close();
    ASSERT_TRUE(WaitUntil([&] {
      EXPECT_EQ(connections_.EndExcessive(now_), 0) << "the caller ended it";
      return connections_.empty();
    }));
  }
  EXPECT_EQ(failed, UnauthenticatedConnections::kFailureBurst);
  const Pair again, other;
  EXPECT_NE(Add(other, 2), 0u);
  now_ += std::chrono::seconds(1);
  EXPECT_NE(Add(again), 0u);
}

TEST_F(UnauthenticatedConnectionsTest, FreedSlotIsUsedLast) {
  const Pair one, two;
  const size_t first = *connections_.Add(one.server(), Address(1), now_);
  connections_.Authenticate(connections_.InSlot(first));
  EXPECT_EQ(connections_.InSlot(first), 0u);
  EXPECT_NE(*connections_.Add(two.server(), Address(1), now_), first);
}

}  // namespace
}  // namespace privatemail::server
