// Unparsable requests, and the hand-written encoder of matches.
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "server/services/response_encoders.h"
#include "tests/unit/server/services/all_rpcs.h"
#include "tests/unit/server/services/daemon_state.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

class WireFormatTest : public ServiceTest {
 protected:
  absl::Status Send(const std::string& path, const std::vector<std::string>& messages) const {
    const auto channel = Connect(daemon_->address(), grpc::InsecureChannelCredentials());
    return CallOnce(channel, path, messages).status;
  }

  static std::string Upload(const std::string& id) {
    return Message("fruit", {MakeItem(id, 3, 1)}).SerializeAsString();
  }
};

constexpr char kUpsert[] = "/privatemail.v1.CollectionsService/UpsertItems";
constexpr char kRestore[] = "/privatemail.v1.CollectionsService/RestoreCollection";
constexpr char kRetrieve[] = "/privatemail.v1.RetrievalService/Retrieve";

// gRPC itself would end a stream with an unparsable message as if it were complete.
TEST_F(WireFormatTest, UnparsableStreamMessageReturnsInvalidArgument) {
  MakeFruit(3, false);
  std::string not_utf8 = Upload("x-y");
  not_utf8[not_utf8.find("x-y") + 1] = '\xff';
  for (const std::string& bad : {not_utf8, std::string("\xff\xff\xff"), Upload("cut").substr(1)}) {
    EXPECT_THAT(Send(kUpsert, {Upload("good"), bad, Upload("after")}),
                FailsWith(kInvalid,
                          "message 1 of the stream: message must be a "
                          "privatemail.v1.UpsertItemsRequest, but its "));
    EXPECT_THAT(Send(kUpsert, {bad}), FailsWith(kInvalid, "message 0 of the stream"));
  }
  v1::RestoreCollectionRequest restore;
  restore.set_collection("new");
  restore.set_data(SnapshotBytes(3));
  EXPECT_THAT(Send(kRestore, {restore.SerializeAsString(), "\xff\xff\xff"}),
              FailsWith(kInvalid, "message 1 of the stream"));
  const v1::ListCollectionsResponse list = ListAll();
  EXPECT_EQ(list.collections_size(), 1);
  EXPECT_EQ(list.collections(0).items(), 4u);  // "good" is stored, though not acknowledged
}

TEST_F(WireFormatTest, UnparsableMessageIsRefusedAndAudited) {
  MakeFruit(3, true);
  for (const google::protobuf::MethodDescriptor* method : AllMethods()) {
    const std::string path = PathOf(*method);
    EXPECT_THAT(
        Send(path, {"\xff\xff\xff"}),
        FailsWith(kInvalid, absl::StrCat("message must be a ", method->input_type()->full_name(),
                                         ", but its 3 bytes cannot be parsed as one")));
    const auto calls = CallsIn(directory_ / "audit.jsonl");
    ASSERT_FALSE(calls.empty()) << path;
    EXPECT_EQ(calls.back()["rpc"], method->name());
    EXPECT_EQ(calls.back()["code"], "INVALID_ARGUMENT");
  }
  EXPECT_THAT(Send("/grpc.health.v1.Health/Check", {"\xff\xff\xff"}),
              FailsWith(kInvalid, "message must be a grpc.health.v1.HealthCheckRequest"));
}

// Covers labels of ten bytes and none, distance 0, and length prefixes of one to three bytes.
TEST(SlotEncoder, MatchesProtobuf) {
  const std::vector<int32_t> labels = {0, 1, -1, 127, 128, std::numeric_limits<int32_t>::min()};
  Embedding embedding;
  for (size_t row = 0; row < labels.size(); ++row) {
    embedding.ids.push_back(std::string(1 + row * 100, static_cast<char>('a' + row)));
    embedding.payloads.push_back(row == 3 ? "" : "\"" + std::string(row * 8000, 'x') + "\"");
  }
  embedding.labels = labels;
  embedding.coordinates = Matrix::Random(6, 2);
  embedding.anchor_coordinates = Matrix::Random(12, 2);
  const StoredCollection collection = SmallCollection("fruit");
  const Retriever retriever(collection.parameters, collection.anchors.labels, embedding);
  RetrievalAnswer answer;
  answer.slots = {{{0, 0.0}, {1, 1.5}, {2, 1e-300}}, {}, {{3, 2}, {4, 3}, {5, 1e300}, {0, -0.0}}};
  for (const bool with_payloads : {false, true}) {
    v1::RetrieveResponse expected;
    for (const auto& slot : answer.slots) {
      v1::SlotMatches* matches = expected.add_slots();
      for (const Neighbor& neighbor : slot) {
        v1::Match* match = matches->add_matches();
        match->set_id(retriever.IdOf(neighbor.row));
        match->set_label(retriever.LabelOf(neighbor.row));
        match->set_squared_distance(neighbor.squared_distance);
        if (with_payloads) match->set_payload(retriever.PayloadOf(neighbor.row));
      }
    }
    const SlotEncoder slots(answer, retriever, with_payloads);
    std::string bytes = "before";
    slots.AppendTo(&bytes);
    EXPECT_EQ(bytes, "before" + expected.SerializeAsString());
    EXPECT_EQ(slots.size(), bytes.size() - 6);
    EXPECT_EQ(slots.matches(), 7u);
  }
}

}  // namespace
}  // namespace privatemail::testing
