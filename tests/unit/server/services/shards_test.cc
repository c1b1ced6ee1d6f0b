#include "server/services/shards.h"

#include <gmock/gmock.h>
#include <grpcpp/security/credentials.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "absl/time/time.h"
#include "common/base/stopwatch.h"

namespace privatemail::testing {
namespace {

using boost::asio::ip::tcp;

// A probe of this shard takes two seconds: it connects, and then nobody answers.
TEST(Shards, WhetherTheyServeIsKnownWithoutWaiting) {
  boost::asio::io_context io;
  const tcp::acceptor silent(io, {boost::asio::ip::address_v4::loopback(), 0});
  const server::Shards shards({{"127.0.0.1:" + std::to_string(silent.local_endpoint().port())}},
                              grpc::InsecureChannelCredentials());
  const Stopwatch running;
  EXPECT_FALSE(shards.Serve());
  EXPECT_LT(running.Elapsed(), absl::Seconds(1));
}

}  // namespace
}  // namespace privatemail::testing
