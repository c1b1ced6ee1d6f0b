// The bytes that a client sends, recorded on the socket.
#include <sys/socket.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/string_view.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/joint/joint_search.h"
#include "tests/e2e/service.h"
#include "tests/testing/matchers.h"

namespace privatemail::e2e {
namespace {

using boost::asio::ip::tcp;
using ::testing::SizeIs;

// Copies until either side ends; returns the copied bytes.
std::string Copy(tcp::socket& from, tcp::socket& to) {
  std::string copied;
  std::array<char, 16384> buffer;
  boost::system::error_code error;
  while (!error) {
    const size_t size = from.read_some(boost::asio::buffer(buffer), error);
    copied.append(buffer.data(), size);
    if (!error) boost::asio::write(to, boost::asio::buffer(buffer.data(), size), error);
  }
  boost::system::error_code ignored;  // the other side may have hung up first
  to.shutdown(tcp::socket::shutdown_send, ignored);
  return copied;
}

// A relay on loopback that forwards one connection after the other to a server, and records what
// clients send.
class Tap {
 public:
  explicit Tap(const std::string& server) {  // 127.0.0.1:PORT
    const size_t colon = server.rfind(':');
    server_ = {boost::asio::ip::make_address(server.substr(0, colon)),
               static_cast<uint16_t>(std::stoi(server.substr(colon + 1)))};
    thread_ = std::thread([this] { Serve(); });
  }
  ~Tap() {                                             // requires that no client is connected
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);  // ends the wait for a client
    thread_.join();
  }

  std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

  // Waits until the next client closes its connection; returns what it sent. Empty after 5 minutes.
  std::string NextConversation() {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait_for(lock, std::chrono::minutes(5), [&] { return !conversations_.empty(); });
    if (conversations_.empty()) return "";
    std::string conversation = std::move(conversations_.front());
    conversations_.pop_front();
    return conversation;
  }

 private:
  void Serve() {
    while (true) {
      tcp::socket client(context_);
      tcp::socket server(context_);
      boost::system::error_code error;
      acceptor_.accept(client, error);
      if (error) return;
      server.connect(server_);
      std::thread answers([&] { Copy(server, client); });
      std::string conversation = Copy(client, server);
      answers.join();
      const std::lock_guard<std::mutex> guard(mutex_);
      conversations_.push_back(std::move(conversation));
      ended_.notify_all();
    }
  }

  boost::asio::io_context context_;
  tcp::endpoint server_;
  tcp::acceptor acceptor_{context_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
  std::mutex mutex_;
  std::condition_variable ended_;
  std::deque<std::string> conversations_;
  std::thread thread_;
};

// The bytes of one call: compressed headers, and data without frame headers.
struct SentCall {
  std::string headers;
  std::string data;

  bool operator==(const SentCall&) const = default;
};

uint32_t BigEndian(absl::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kFrameHeaderBytes = 9;
enum FrameType : uint8_t { kData = 0, kHeaders = 1, kResetStream = 3, kContinuation = 9 };

// Parses the calls of an HTTP/2 conversation in their order (RFC 9113). Skips frames that belong to
// no call (settings, windows, pings); fails the test on anything else.
std::vector<SentCall> CallsOf(const std::string& conversation) {
  EXPECT_EQ(conversation.substr(0, kPreface.size()), kPreface);
  std::map<uint32_t, SentCall> calls;  // clients number their streams upwards
  size_t at = kPreface.size();
  while (at + kFrameHeaderBytes <= conversation.size()) {
    const absl::string_view header(conversation.data() + at, kFrameHeaderBytes);
    const uint32_t size = BigEndian(header.substr(0, 3));
    const auto type = static_cast<uint8_t>(header[3]);
    const uint32_t stream = BigEndian(header.substr(5, 4));
    const std::string payload = conversation.substr(at + kFrameHeaderBytes, size);
    EXPECT_EQ(payload.size(), size) << "the last frame is cut short";
    at += kFrameHeaderBytes + size;
    if (type == kData) calls[stream].data += payload;
    if (type == kHeaders || type == kContinuation) calls[stream].headers += payload;
    EXPECT_NE(type, kResetStream) << "a call was broken off";
  }
  EXPECT_EQ(at, conversation.size());
  std::vector<SentCall> in_order;
  for (auto& [stream, call] : calls) {
    if (!call.headers.empty()) in_order.push_back(std::move(call));
  }
  return in_order;
}

// gRPC prefixes a message with a flag and its length: 5 bytes.
std::string Message(const SentCall& call) { return call.data.substr(5); }

// grpc-timeout is rounded in steps that grow with it: here hours, so that it does not differ.
constexpr double kDeadlineSeconds = 3e8;

class WireTap : public FilledService {
 protected:
  void SetUp() override {
    FilledService::SetUp();
    tap_ = std::make_unique<Tap>(daemon_->address());
    user_.flags = {"--server", tap_->address(), "--insecure", "--deadline",
                   std::to_string(kDeadlineSeconds)};
  }

  // Sends one request on its own connection.
  std::vector<SentCall> Send(const v1::RetrieveRequest& request) {
    {
      ConnectionOptions options;
      options.server = tap_->address();
      options.insecure = true;
      options.deadline = absl::Seconds(kDeadlineSeconds);
      EXPECT_THAT(AdminClient::Create(options)->Retrieve(request), IsOk());
    }
    return CallsOf(tap_->NextConversation());
  }

  // Runs `privatemail query` for a row of the file "queries".
  std::vector<SentCall> SendQuery(int row) {
    const std::vector<std::string> which = {"--row",     std::to_string(row),
                                            "--label",   std::to_string(row % kClasses),
                                            "--scheme",  "joint",
                                            "--epsilon", "1",
                                            "--delta",   "1e-5"};
    Answer(Query(which));
    return CallsOf(tap_->NextConversation());
  }

  std::unique_ptr<Tap> tap_;
};

// Two targets of two classes: with the release of the first, the second request is byte-identical
// in calls, headers and data.
TEST_F(WireTap, RequestDependsOnTheTargetByItsReleaseOnly) {
  const AdminClient direct = Connect();
  const v1::GetCollectionResponse collection = *direct.GetCollection("things");
  const auto joint = *JointCollection::Create(
      collection, [&] { return direct.GetAnchors("things", collection.fingerprint()); }, {}, {});
  const std::string& uuid = joint->scheme.parameters().collection_uuid;
  const std::unique_ptr<Ledger> ledger = *Ledger::Open(folder_ / "sdk.sqlite");
  ASSERT_THAT(ledger->Grant(uuid, {100, .1}), IsOk());
  const Labelled queries = SeparatedClasses(2, 3);
  SecureBits bits;
  for (const PostProcessing where : {PostProcessing::kClient, PostProcessing::kServer}) {
    const auto prepare = [&](int row) {
      const SearchRequest request{
          .collection = "things",
          .targets = {{.features = queries.vectors.row(row), .label = queries.labels[row]}},
          .epsilon = 1,
          .delta = 1e-5,
          .post_process = where};
      const auto search = *JointSearch::Create(joint, request);
      const PreparedSearch prepared = *search->Prepare(0, 1, ChargeTo(*ledger, uuid), bits);
      return static_cast<const v1::RetrieveRequest&>(*prepared.message);
    };
    const v1::RetrieveRequest one = prepare(0);
    v1::RetrieveRequest two = prepare(1);
    const std::vector<SentCall> bytes_of_one = Send(one);
    const std::vector<SentCall> bytes_of_two = Send(two);
    ASSERT_THAT(bytes_of_one, SizeIs(1));
    EXPECT_EQ(Message(bytes_of_one[0]), one.SerializeAsString());
    EXPECT_NE(bytes_of_one, bytes_of_two);
    *two.mutable_release() = one.release();
    EXPECT_EQ(bytes_of_one, Send(two));
  }
}

// All calls of a query from the command line, their lengths included.
TEST_F(WireTap, QueriesForTwoTargetsDifferInTheReleaseOnly) {
  const std::vector<SentCall> one = SendQuery(0);
  const std::vector<SentCall> two = SendQuery(1);
  ASSERT_THAT(one, SizeIs(4)) << "GetCollection twice, GetAnchors, Retrieve";
  ASSERT_THAT(two, SizeIs(4));
  for (const size_t call : {0, 1, 2}) EXPECT_EQ(one[call], two[call]);
  EXPECT_EQ(one[3].headers, two[3].headers);
  EXPECT_EQ(one[3].data.size(), two[3].data.size());
  v1::RetrieveRequest asked_one;
  v1::RetrieveRequest asked_two;
  ASSERT_TRUE(asked_one.ParseFromString(Message(one[3])));
  ASSERT_TRUE(asked_two.ParseFromString(Message(two[3])));
  asked_one.clear_release();
  asked_two.clear_release();
  EXPECT_EQ(asked_one.SerializeAsString(), asked_two.SerializeAsString());
}

}  // namespace
}  // namespace privatemail::e2e
