// Unparsable requests, the hand-written encoder of matches, and the merging of shards' answers.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

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

// Distances are few, so that many are equal, between answers and within one.
TEST(MergeSlots, HasTheNearestOfAllAnswersAndOfEqualDistancesThoseOfTheFirstIds) {
  constexpr int kSlots = 50;
  std::mt19937 random(1);
  const auto is_nearer = [](const v1::Match& a, const v1::Match& b) {
    return std::make_pair(a.squared_distance(), a.id()) <
           std::make_pair(b.squared_distance(), b.id());
  };
  std::vector<v1::RetrieveResponse> answers(4);  // the last one has no match
  for (auto& answer : answers) {
    for (int slot = 0; slot < kSlots; ++slot) answer.add_slots();
    answer.set_embedding_version(7);
  }
  for (int id = 0; id < 1000; ++id) {
    v1::Match match;
    match.set_id(absl::StrCat(std::string(id % 3 == 0 ? 200 : 0, 'x'), id));
    match.set_label(static_cast<int>(random() % 3) - 1);
    match.set_squared_distance(static_cast<double>(random() % 4) / 2);
    if (id % 5 == 0) match.set_payload(std::string(20'000, 'p'));
    *answers[random() % 3].mutable_slots(static_cast<int>(random() % kSlots))->add_matches() =
        match;
  }
  std::vector<std::string> encoded;
  std::vector<std::vector<v1::Match>> expected(kSlots);
  for (auto& answer : answers) {
    for (int slot = 0; slot < kSlots; ++slot) {
      auto& matches = *answer.mutable_slots(slot)->mutable_matches();
      std::sort(matches.begin(), matches.end(), is_nearer);
      expected[slot].insert(expected[slot].end(), matches.begin(), matches.end());
    }
    encoded.push_back(answer.SerializeAsString());
  }
  const std::vector<absl::string_view> views(encoded.begin(), encoded.end());
  for (const size_t k : {1, 8, 1000}) {
    v1::RetrieveResponse nearest;
    size_t matches = 0;
    for (std::vector<v1::Match> of_all : expected) {
      std::sort(of_all.begin(), of_all.end(), is_nearer);
      of_all.resize(std::min(k, of_all.size()));
      matches += of_all.size();
      nearest.add_slots()->mutable_matches()->Assign(of_all.begin(), of_all.end());
    }
    ASSERT_OK_AND_ASSIGN(const MergedSlots merged, MergeSlots(views, k));
    EXPECT_EQ(merged.bytes, nearest.SerializeAsString()) << k;
    EXPECT_EQ(merged.slots, static_cast<size_t>(kSlots));
    EXPECT_EQ(merged.matches, matches);
    for (const absl::string_view rest : merged.rests) {
      v1::RetrieveResponse part;
      ASSERT_TRUE(part.ParseFromArray(rest.data(), static_cast<int>(rest.size())));
      EXPECT_EQ(part.ShortDebugString(), "embedding_version: 7");
    }
  }
}

TEST(MergeSlots, AnswersThatCannotBeMergedAreInternal) {
  v1::RetrieveResponse answer;
  answer.add_slots()->add_matches()->set_id("one");
  const std::string good = answer.SerializeAsString();
  answer.add_slots();
  const std::string longer = answer.SerializeAsString();
  answer.mutable_slots(0)->mutable_matches(0)->set_id("\xff\xff");
  std::string cut = good;
  cut[1] = 1;  // the length of the slot: its match is cut off
  EXPECT_THAT(MergeSlots({good, good}, 1), IsOk());
  EXPECT_THAT(MergeSlots({good, longer}, 1), FailsWith(absl::StatusCode::kInternal, "same slots"));
  EXPECT_THAT(MergeSlots({good, good.substr(0, 4)}, 1),
              FailsWith(absl::StatusCode::kInternal, "same slots"));
  for (const std::string& bad : {cut, answer.SerializeAsString()}) {
    EXPECT_THAT(MergeSlots({good, bad}, 1), FailsWith(absl::StatusCode::kInternal, "a match"));
  }
}

}  // namespace
}  // namespace privatemail::testing
