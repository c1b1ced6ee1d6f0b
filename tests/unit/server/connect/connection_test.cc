#include "server/connect/connection.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace privatemail::testing {
namespace {

namespace asio = boost::asio;
using server::Connection;
using server::Connections;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kIdleTime(1);

// A client whose request is being served, on one thread with the connection.
class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest() {
    connections_.idle_time = kIdleTime;
    connections_.serve = [this](std::shared_ptr<Connection> connection) {
      served_ = std::move(connection);
    };
    asio::ip::tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
    client_.open(asio::ip::tcp::v4());
    client_.set_option(asio::socket_base::receive_buffer_size(64 << 10));
    client_.connect(acceptor.local_endpoint());
    client_.non_blocking(true);
    std::make_shared<Connection>(acceptor.accept(), &connections_)->AwaitRequest();
    asio::write(client_, asio::buffer(std::string("POST / HTTP/1.1\r\n\r\n")));
    RunUntil([this] { return served_ != nullptr; });
    served_->SetOnCut([this] { is_cut_ = true; });
  }

  void RunUntil(const std::function<bool()>& holds) {
    while (!holds()) {
      io_.restart();
      ASSERT_GT(io_.run_one_for(std::chrono::minutes(1)), 0u) << "nothing happens any more";
    }
  }

  // Writes more than the buffers of both sides hold.
  void WriteLongAnswer() {
    const grpc::Slice piece(std::string(1 << 20, 'x'));
    served_->Write("head", std::vector<grpc::Slice>(64, piece), [this] { is_written_ = true; });
  }

  // Reads what is there, and lets the connection go on.
  void ReadSome() {
    char bytes[64 << 10];
    boost::system::error_code error;
    received_ += client_.read_some(asio::buffer(bytes), error);
    io_.restart();
    io_.poll();
  }

  Connections connections_;
  asio::io_context io_;
  asio::ip::tcp::socket client_{io_};
  std::shared_ptr<Connection> served_;
  size_t received_ = 0;
  bool is_written_ = false;
  bool is_cut_ = false;
};

// The pauses are what is tested: each is shorter than the limit, together they are longer.
TEST_F(ConnectionTest, ClientThatReadsSlowlyGetsItsAnswer) {
  const auto start = steady_clock::now();
  WriteLongAnswer();
  while (steady_clock::now() < start + 2 * kIdleTime) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ReadSome();
  }
  EXPECT_FALSE(is_written_) << "it was not slow";
  while (!is_cut_ && received_ < 4 + (64 << 20)) ReadSome();
  RunUntil([this] { return is_cut_ || is_written_; });
  EXPECT_FALSE(is_cut_);
  EXPECT_EQ(connections_.untaken_bytes, 0u);
}

TEST_F(ConnectionTest, ClientThatStopsReadingIsCut) {
  WriteLongAnswer();
  while (received_ < 1 << 20) ReadSome();
  RunUntil([this] { return is_cut_; });
  EXPECT_FALSE(is_written_);
  EXPECT_EQ(connections_.untaken_bytes, 0u);
}

TEST_F(ConnectionTest, ClientThatHasNotTakenAnAnswerGetsNoOther) {
  WriteLongAnswer();
  bool is_other_written = false;
  served_->Write("other", {}, [&] { is_other_written = true; });
  EXPECT_TRUE(is_cut_);
  EXPECT_EQ(connections_.untaken_bytes, 0u);
  served_ = nullptr;
  RunUntil([this] { return connections_.all.empty(); });
  EXPECT_FALSE(is_written_ || is_other_written);
}

}  // namespace
}  // namespace privatemail::testing
