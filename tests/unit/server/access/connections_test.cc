#include "server/access/connections.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/wait_until.h"

namespace privatemail::server {
namespace {

using Clock = Connections::Clock;

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
  // As the process does.
  void Receive(size_t bytes) {
    std::vector<char> data(bytes);
    EXPECT_EQ(::recv(server_, data.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
  }
  bool SendsToCaller() { return ::send(server_, "x", 1, MSG_NOSIGNAL) == 1; }
  void SendBack() { EXPECT_EQ(::write(server_, "x", 1), 1); }
  void CloseHalf() { ::shutdown(caller_, SHUT_WR); }
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

constexpr char kRevoked[] = "revoked";

Connections::Options Options() {
  Connections::Options options;
  options.is_valid = [](const std::string& key) { return key != kRevoked; };
  options.max_connections = 5;
  options.max_unread_bytes = 100'000;
  options.max_unanswered_bytes = 40'000;
  options.max_unanswered_bytes_of_call = 0;
  options.max_unfinished_calls = 30;
  options.max_all_unfinished_calls = 50;
  options.slots = 3;
  options.max_per_address = 2;
  options.seconds = 10;
  options.max_bytes = 1000;
  options.max_calls = 5;
  options.trusted_proxies = {std::string("\x0a\0\0\x09", 4)};
  options.proxy_slots = 3;
  return options;
}

class ConnectionsTest : public ::testing::Test {
 protected:
  uint64_t Add(const Pair& pair, uint8_t address = 1) {
    const absl::StatusOr<size_t> slot = connections_.Add(pair.server(), Address(address), now_);
    return slot.ok() ? connections_.InSlot(*slot) : 0;
  }
  uint64_t AddWithKey(const Pair& pair, const std::string& key, uint8_t address = 1) {
    const uint64_t connection = Add(pair, address);
    AccessKey known;
    known.id = key;
    connections_.Authenticate(connection, known, now_);
    return connection;
  }
  int64_t EndLater() {
    now_ += std::chrono::seconds(1);
    return connections_.EndExcessive(now_);
  }

  Connections connections_{Options()};
  Clock::time_point now_ = Clock::now();
};

TEST_F(ConnectionsTest, TooManyBytesEndConnection) {
  Pair quiet;
  Pair loud;
  const uint64_t first = Add(quiet);
  const uint64_t second = Add(loud);
  quiet.Send(1000);
  loud.Send(1001);
  EXPECT_TRUE(WaitUntil([&] { return connections_.EndExcessive(now_) == 1; }));
  EXPECT_TRUE(connections_.IsUnauthenticated(first));
  EXPECT_FALSE(connections_.IsUnauthenticated(second));
  // Also what arrived before.
  EXPECT_TRUE(loud.IsEnded());
}

TEST_F(ConnectionsTest, TooManyCallsEndConnectionAtOnce) {
  const Pair pair;
  const uint64_t connection = Add(pair);
  for (int i = 0; i < 5; ++i) connections_.BeginCall(connection, now_);
  EXPECT_FALSE(pair.IsEnded());
  connections_.BeginCall(connection, now_);
  EXPECT_TRUE(pair.IsEnded());
  EXPECT_EQ(connections_.NextLook(), std::nullopt);
}

TEST_F(ConnectionsTest, SilenceEndsConnectionButNotAuthenticatedOne) {
  const Pair silent;
  const Pair known;
  Add(silent);
  AddWithKey(known, "key");
  EXPECT_EQ(connections_.EndExcessive(now_ + std::chrono::seconds(10)), 0);
  EXPECT_EQ(connections_.EndExcessive(now_ + std::chrono::seconds(11)), 1);
  EXPECT_TRUE(silent.IsEnded());
  EXPECT_FALSE(known.IsEnded());
}

TEST_F(ConnectionsTest, AddressHasLimitAndNewcomersReplaceItsOldest) {
  const Pair one, two, three, four, five;
  const uint64_t first = Add(one, 1);
  EXPECT_NE(Add(two, 1), 0u);
  EXPECT_EQ(Add(three, 1), 0u);
  EXPECT_NE(Add(four, 2), 0u);
  EXPECT_NE(Add(five, 3), 0u) << "no slot is free";
  EXPECT_TRUE(one.IsEnded());
  EXPECT_FALSE(connections_.IsUnauthenticated(first));
  EXPECT_FALSE(four.IsEnded());
}

TEST_F(ConnectionsTest, FailedConnectionsCloseAddressForAWhile) {
  int failed = 0;
  for (; failed < 1000; ++failed) {
    Pair pair;
    if (Add(pair) == 0) break;
    pair.Send(950);  // .95 of the limit
    pair.Close();
    ASSERT_TRUE(WaitUntil([&] {
      EXPECT_EQ(connections_.EndExcessive(now_), 0) << "the caller ended it";
      return !connections_.NextLook().has_value();
    }));
  }
  EXPECT_EQ(failed, Connections::kFailureBurst);
  const Pair again, other;
  EXPECT_NE(Add(other, 2), 0u);
  now_ += std::chrono::seconds(1);
  EXPECT_NE(Add(again), 0u);
}

TEST_F(ConnectionsTest, FreedSlotIsUsedLast) {
  const Pair one, two;
  const size_t first = *connections_.Add(one.server(), Address(1), now_);
  connections_.Authenticate(connections_.InSlot(first), AccessKey(), now_);
  EXPECT_EQ(connections_.InSlot(first), 0u);
  EXPECT_NE(*connections_.Add(two.server(), Address(1), now_), first);
}

TEST_F(ConnectionsTest, CallsWithoutAnswerEndConnection) {
  const Pair calls, resets;
  const uint64_t honest = AddWithKey(calls, "key");
  const uint64_t attacker = AddWithKey(resets, "key");
  for (int i = 0; i < 1000; ++i) {
    connections_.BeginCall(honest, now_);
    connections_.EndCall(honest, /*answered=*/true);
  }
  for (int i = 0; i < 60; ++i) {
    connections_.BeginCall(attacker, now_);
    connections_.EndCall(attacker, /*answered=*/false);
  }
  EXPECT_EQ(EndLater(), 1) << "20 are forgotten in a second";
  EXPECT_TRUE(resets.IsEnded());
  EXPECT_FALSE(calls.IsEnded());
}

TEST_F(ConnectionsTest, UnansweredCallsEndConnectionsOfLargestKey) {
  const Pair one, two, other;
  const uint64_t first = AddWithKey(one, "many");
  const uint64_t second = AddWithKey(two, "many");
  const uint64_t third = AddWithKey(other, "few", 2);
  for (int i = 0; i < 45; ++i) connections_.BeginCall(first, now_);
  for (int i = 0; i < 40; ++i) connections_.BeginCall(second, now_);
  for (int i = 0; i < 44; ++i) connections_.BeginCall(third, now_);
  EXPECT_EQ(EndLater(), 1);
  EXPECT_TRUE(one.IsEnded());
  EXPECT_FALSE(two.IsEnded());
  EXPECT_FALSE(other.IsEnded());
}

// An endless header: nothing is sent, because no window is needed.
TEST_F(ConnectionsTest, BytesWithoutAnswerEndConnection) {
  Pair waiting, message, header;
  for (const Pair* pair : {&waiting, &message}) AddWithKey(*pair, "key");
  AddWithKey(header, "other", 2);
  EXPECT_EQ(EndLater(), 0);
  for (Pair* pair : {&waiting, &message, &header}) pair->Send(41'000);
  for (Pair* pair : {&message, &header}) pair->Receive(41'000);
  message.SendBack();
  ASSERT_TRUE(WaitUntil([&] { return EndLater() == 1; }));
  EXPECT_TRUE(header.IsEnded());
  EXPECT_FALSE(message.IsEnded());
  EXPECT_FALSE(waiting.IsEnded()) << "the process has not read them";
}

// The rest of a message may arrive after its call's deadline, and be read by and by, while nothing
// is sent.
TEST_F(ConnectionsTest, BytesOfCallThatHasEndedAreAllowedUntilItIsAnswered) {
  Connections::Options options = Options();
  options.max_unanswered_bytes_of_call = 40'000;
  options.max_unread_bytes = 1'000'000;
  Connections connections(options);
  Pair silent, answered;
  const auto end_after = [&](Pair* pair, size_t bytes) {
    pair->Send(bytes);
    pair->Receive(bytes);
    now_ += std::chrono::seconds(1);
    return connections.EndExcessive(now_);
  };
  for (Pair* pair : {&silent, &answered}) {
    const uint64_t connection =
        connections.InSlot(*connections.Add(pair->server(), Address(1), now_));
    connections.Authenticate(connection, AccessKey(), now_);
    EXPECT_EQ(end_after(pair, 1000), 0);
    connections.BeginCall(connection, now_);
    connections.EndCall(connection, /*answered=*/true);
    EXPECT_EQ(end_after(pair, 60'000), 0);
    EXPECT_EQ(end_after(pair, 10'000), 0) << "nothing was sent since the call";
  }
  EXPECT_EQ(end_after(&silent, 20'000), 1);
  EXPECT_TRUE(silent.IsEnded());
  answered.SendBack();
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(connections.EndExcessive(now_), 0);
  EXPECT_EQ(end_after(&answered, 60'000), 0) << "the rest of a message after the answer";
  answered.SendBack();
  now_ += std::chrono::seconds(9);
  EXPECT_EQ(connections.EndExcessive(now_), 0);
  EXPECT_EQ(end_after(&answered, 39'000), 0);
  EXPECT_EQ(end_after(&answered, 2'000), 1) << "no call was running";
}

TEST_F(ConnectionsTest, BytesOfCallThatHasEndedCountForAllConnections) {
  Connections::Options options = Options();
  options.max_unanswered_bytes_of_call = 200'000;
  Connections connections(options);
  Pair pair;
  const uint64_t connection = connections.InSlot(*connections.Add(pair.server(), Address(1), now_));
  connections.Authenticate(connection, AccessKey(), now_);
  connections.BeginCall(connection, now_);
  connections.EndCall(connection, /*answered=*/false);
  const auto end_after = [&](size_t bytes) {
    pair.Send(bytes);
    pair.Receive(bytes);
    now_ += std::chrono::seconds(1);
    return connections.EndExcessive(now_);
  };
  EXPECT_EQ(end_after(90'000), 0);
  EXPECT_EQ(end_after(30'000), 1) << "more than max_unread_bytes";
}

TEST_F(ConnectionsTest, UnfinishedMessagesEndConnectionOfTheKeyWithTheMost) {
  Pair finished, few, many;
  const uint64_t honest = AddWithKey(finished, "finished");
  for (const uint64_t connection : {honest, AddWithKey(few, "few"), AddWithKey(many, "many", 2)}) {
    connections_.BeginCall(connection, now_);
  }
  // A window update after each part.
  const auto send = [&](Pair* pair, int parts) {
    for (int i = 0; i < parts; ++i) {
      pair->Send(30'000);
      pair->Receive(30'000);
      pair->SendBack();
      EXPECT_EQ(EndLater(), 0);
    }
  };
  send(&few, 1);
  for (int i = 0; i < 3; ++i) {
    send(&finished, 1);
    connections_.CountMessage(honest, 30'000);
  }
  send(&many, 2);
  many.Send(40'000);
  EXPECT_TRUE(WaitUntil([&] { return EndLater() == 1; }));
  EXPECT_TRUE(many.IsEnded());
  EXPECT_FALSE(few.IsEnded());
  EXPECT_FALSE(finished.IsEnded());
}

TEST_F(ConnectionsTest, KeyWithMoreThanHalfOfAllMakesPlace) {
  std::vector<std::unique_ptr<Pair>> pairs;
  const auto add = [&](const std::string& key) {
    pairs.push_back(std::make_unique<Pair>());
    return AddWithKey(*pairs.back(), key, static_cast<uint8_t>(pairs.size()));
  };
  connections_.BeginCall(add("many"), now_);
  add("many");
  connections_.BeginCall(add("many"), now_);
  add("few");
  add("few");
  const Pair stranger;
  EXPECT_NE(Add(stranger, 100), 0u);
  for (const auto& pair : pairs) EXPECT_FALSE(pair->IsEnded()) << "only keys make place for keys";
  add("other");
  EXPECT_TRUE(pairs[1]->IsEnded()) << "it has no running call";
  EXPECT_FALSE(pairs[0]->IsEnded());
  EXPECT_FALSE(pairs.back()->IsEnded());
  add("other");
  EXPECT_TRUE(pairs.back()->IsEnded()) << "no key has more than half";
}

TEST_F(ConnectionsTest, ConnectionOfRevokedKeyEndsAfterAWhile) {
  const Pair valid, revoked;
  AddWithKey(valid, "key");
  AddWithKey(revoked, kRevoked);
  for (int i = 0; i < 11; ++i) EXPECT_EQ(EndLater(), 0);
  EXPECT_EQ(EndLater(), 1);
  EXPECT_TRUE(revoked.IsEnded());
  EXPECT_FALSE(valid.IsEnded());
}

// gRPC keeps it while an answer is not taken.
TEST_F(ConnectionsTest, HalfClosedConnectionIsEnded) {
  Pair pair;
  AddWithKey(pair, "key");
  EXPECT_TRUE(pair.SendsToCaller());
  pair.CloseHalf();
  EXPECT_TRUE(WaitUntil([&] {
    EndLater();
    return !connections_.NextLook().has_value();
  }));
  EXPECT_FALSE(pair.SendsToCaller());
}

TEST_F(ConnectionsTest, CallsBeforeFirstKeyDoNotHideRunningOnes) {
  Pair pair;
  const uint64_t connection = Add(pair);
  for (int i = 0; i < 3; ++i) connections_.BeginCall(connection, now_);
  AccessKey key;
  key.id = "key";
  connections_.Authenticate(connection, key, now_);
  connections_.BeginCall(connection, now_);
  for (int i = 0; i < 3; ++i) connections_.EndCall(connection, /*answered=*/false);
  int parts = 0;
  for (; parts < 10 && !pair.IsEnded(); ++parts) {
    pair.Send(30'000);
    pair.Receive(30'000);
    pair.SendBack();
    EndLater();
  }
  EXPECT_EQ(parts, 4) << "the message that has not ended takes more than 100,000 bytes";
}

TEST_F(ConnectionsTest, AddressOfEndedConnectionsIsRefusedForSecondsOnly) {
  for (int i = 0; i < 5; ++i) {
    const Pair pair;
    const uint64_t connection = AddWithKey(pair, "key");
    for (int call = 0; call < 60; ++call) connections_.BeginCall(connection, now_);
    EndLater();
  }
  const Pair refused, later;
  EXPECT_EQ(Add(refused), 0u);
  now_ += std::chrono::seconds(11);
  EXPECT_NE(Add(later), 0u);
}

TEST_F(ConnectionsTest, TrustedProxyIsNotLimited) {
  constexpr uint8_t kProxy = 9;
  const Pair stranger;
  const uint64_t connection = Add(stranger);
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < 4; ++i) {
    pairs.push_back(std::make_unique<Pair>());
    const uint64_t proxied = AddWithKey(*pairs.back(), i == 3 ? kRevoked : "key", kProxy);
    ASSERT_NE(proxied, 0u);
    EXPECT_FALSE(connections_.IsUnauthenticated(proxied));
  }
  const Pair waiting;
  EXPECT_TRUE(connections_.IsUnauthenticated(Add(waiting, kProxy)));
  for (int i = 0; i < 12; ++i) EndLater();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(pairs[i]->IsEnded());
  EXPECT_TRUE(pairs[3]->IsEnded()) << "its key is no longer valid";
  EXPECT_TRUE(waiting.IsEnded()) << "no call came";
  EXPECT_FALSE(connections_.IsUnauthenticated(connection)) << "no call came";
}

TEST_F(ConnectionsTest, ConnectionOfProxyBelongsToKeyOfLastCall) {
  constexpr uint8_t kProxy = 9;
  const Pair pair;
  const uint64_t proxied = AddWithKey(pair, kRevoked, kProxy);
  AccessKey key;
  key.id = "key";
  connections_.Authenticate(proxied, key, now_);
  for (int i = 0; i < 12; ++i) EndLater();
  EXPECT_FALSE(pair.IsEnded());
  const Pair of_one_caller;
  const uint64_t direct = AddWithKey(of_one_caller, kRevoked);
  connections_.Authenticate(direct, key, now_);
  for (int i = 0; i < 12; ++i) EndLater();
  EXPECT_TRUE(of_one_caller.IsEnded());
}

TEST_F(ConnectionsTest, ConnectionOfProxyWaitsForSlot) {
  constexpr uint8_t kProxy = 9;
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < 3; ++i) {
    pairs.push_back(std::make_unique<Pair>());
    EXPECT_NE(Add(*pairs.back(), kProxy), 0u);
  }
  const Pair waiting;
  EXPECT_EQ(connections_.Add(waiting.server(), Address(kProxy), now_).status().code(),
            absl::StatusCode::kUnavailable);
  pairs.pop_back();
  EndLater();
  EXPECT_NE(Add(waiting, kProxy), 0u);
  const Pair stranger;
  EXPECT_NE(Add(stranger), 0u);
}

}  // namespace
}  // namespace privatemail::server
