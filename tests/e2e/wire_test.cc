// The bytes that a client sends, recorded on the socket.
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/joint/joint_search.h"
#include "tests/e2e/service.h"
#include "tests/e2e/tap.h"
#include "tests/testing/matchers.h"

namespace privatemail::e2e {
namespace {

using ::testing::SizeIs;

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
