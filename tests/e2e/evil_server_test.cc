// A server that sends what no daemon does. It fills neither memory nor disk, keeps nobody computing
// and controls no terminal, and nothing is charged for its collection.
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/wire/proto_conversions.h"
#include "common/wire/snapshot.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "tests/e2e/service.h"
#include "tests/testing/canned_server.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using privatemail::testing::CannedAnswer;
using privatemail::testing::CannedServer;
using privatemail::testing::Repeated;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kMegabyte = 1'000'000;
constexpr char kUuid[] = "5a0c2a4e-1c0b-4d5f-8a35-8d1f7f1c9e11";
constexpr char kEscape[] = "\x1b[2J\xc2\x9b\r\nforged line";

class EvilServer : public ::testing::Test {
 protected:
  // Publishes the collection "things" of these anchors; the anchors' features are not separated.
  void Publish(int anchors, int columns, const EmbeddingSettings& settings) {
    published_ = {FloatMatrix::Random(anchors, columns), {}};
    for (int i = 0; i < anchors; ++i) published_.labels.push_back(i % 2);
    const PublicParameters parameters =
        *MakePublicParameters(kUuid, settings, published_, {}, "vectors", {}, std::nullopt, {});
    ToProto(parameters, collection_.mutable_parameters());
    collection_.set_fingerprint(Fingerprint(parameters));
    collection_.set_name("things");
    collection_.set_embedding_version(1);
    collection_.set_items(1000);
    collection_.set_embedded_items(1000);
    server_.Answer("GetCollection", collection_);
    v1::GetAnchorsResponse chunk;
    ToProto(published_.features, chunk.mutable_features());
    chunk.mutable_labels()->Assign(published_.labels.begin(), published_.labels.end());
    server_.Answer("GetAnchors", chunk);
  }

  // Runs a query of a row of ones.
  Outcome Query(const Command& more) const {
    std::string row;
    for (Eigen::Index i = 0; i < published_.features.cols(); ++i)
      absl::StrAppend(&row, i ? ",1" : "1");
    return Run(Join({"query", "things", "--vectors", folder_.Write("row.csv", row + "\n"), "--row",
                     "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5", "--json"},
                    more));
  }

  void Grant() const {
    ASSERT_EQ(Run({"budget", "set", "things", "--epsilon", "10", "--delta", ".1"}).exit_code, 0);
  }

  Outcome Run(const Command& command) const { return user_.Run(command); }

  CannedServer server_;
  const TemporaryFolder folder_;
  User user_{{"--server", server_.address(), "--insecure"}, folder_ / "state"};
  Anchors published_;
  v1::GetCollectionResponse collection_;
  // Six items of four columns.
  const std::string rows_ = folder_.Write("rows.csv", Repeated("1,0,0,2\n0,1,3,0\n0,4,1,1\n", 2));
  const std::string labels_ = folder_.Write("labels.txt", "0\n1\n0\n0\n1\n0\n");
  const Command upload_ = {"ingest",   "things", "--vectors", rows_,
                           "--labels", labels_,  "--replace"};
};

// Within the limit when parsed, but not with their text. EvilAnswers has messages beyond it.
TEST_F(EvilServer, RowsOfAListDoNotFillTheMemory) {
  server_.Answer("ListCollections", {Repeated({'\x0a', '\0'}, kMegabyte)});
  const Outcome outcome = Run({"collection", "list"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("bytes for the rows that the server sent"));
  EXPECT_LT(outcome.peak_memory, 2500 * kMegabyte);
  server_.Answer("ListCollections", {Repeated({'\x0a', '\0'}, 100)});
  EXPECT_EQ(Run({"collection", "list"}).exit_code, 0);
}

// Within the memory, but minutes of post-processing, and nothing that could be rehearsed against.
TEST_F(EvilServer, ComputingEndsAtTheDeadline) {
  EmbeddingSettings settings;
  settings.embedding_dim = 256;
  settings.steps = 10'000;
  Publish(4000, 8, settings);
  Grant();
  const absl::Time start = absl::Now();
  const Outcome outcome = Query({"--scheme", "joint", "--deadline", "2"});
  EXPECT_EQ(outcome.json()["error"]["code"], "DEADLINE_EXCEEDED") << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("--deadline must be longer for a release"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  const json budget = Run({"budget", "show", "things", "--json"}).json();
  EXPECT_EQ(budget["spent"]["epsilon"], 0);
}

// Else lost items would look stored.
TEST_F(EvilServer, WrongCountsOfAnUploadReturnDataLoss) {
  Publish(20, 4, EmbeddingSettings{});
  v1::UpsertItemsResponse response;
  for (const uint64_t inserted : {5, 6, 7}) {
    response.set_inserted(inserted);
    server_.Answer("UpsertItems", response);
    const Outcome outcome = Run(upload_);
    EXPECT_EQ(outcome.exit_code, inserted == 6 ? 0 : 1);
    if (inserted == 6) continue;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("(DATA_LOSS)"),
                      HasSubstr(absl::StrCat("answered for ", inserted, " of 6 items"))));
  }
}

TEST_F(EvilServer, ControlCharactersAreEscaped) {
  Publish(20, 4, EmbeddingSettings{});
  collection_.set_index(kEscape);
  server_.Answer("GetCollection", collection_);
  v1::GetCollectionResponse named = collection_;
  named.set_name(kEscape);
  named.set_index(kEscape);
  named.set_cells(kEscape);
  named.mutable_parameters()->set_extractor(kEscape);
  named.mutable_parameters()->add_class_names(kEscape);
  v1::ListCollectionsResponse all;
  *all.add_collections() = named;
  server_.Answer("ListCollections", all);
  v1::CreateCollectionResponse created;
  *created.mutable_collection() = named;
  server_.Answer("CreateCollection", created);
  v1::BuildEmbeddingResponse built;
  *built.mutable_collection() = named;
  built.set_plan(kEscape);
  server_.Answer("BuildEmbedding", {built.SerializeAsString(), built.SerializeAsString()});
  v1::ListKeysResponse keys;
  keys.add_keys()->set_name(kEscape);
  keys.mutable_keys(0)->set_id(kEscape);
  keys.mutable_keys(0)->add_collections(kEscape);
  server_.Answer("ListKeys", keys);
  v1::ScrollItemsResponse items;
  items.add_items()->set_id(kEscape);
  items.mutable_items(0)->set_payload(kEscape);
  items.set_next_cursor(kEscape);
  server_.Answer("ScrollItems", items);
  v1::UpsertItemsResponse upserted;
  upserted.set_inserted(6);
  v1::RejectedItem& rejected = *upserted.add_first_rejected();
  rejected.set_id(kEscape);
  rejected.set_reason(kEscape);
  server_.Answer("UpsertItems", upserted);
  server_.Answer("DeleteItems", {}, {grpc::StatusCode::INTERNAL, kEscape});
  for (const Command& command : std::vector<Command>{
           {"collection", "list"},
           {"collection", "info", "things"},
           {"collection", "create", "things", "--anchors", rows_, "--anchor-labels", labels_},
           {"build", "things"},
           {"key", "list"},
           {"items", "list", "things", "--limit", "1"},
           upload_,
           {"items", "delete", "things", "x"}}) {
    for (const Command& flags : {Command{"-v"}, Command{"--json"}}) {
      const Outcome outcome = Run(Join(command, flags));
      EXPECT_EQ(outcome.exit_code, command.back() == "x" ? 1 : 0) << command[0] << outcome.err;
      EXPECT_THAT(outcome.out + outcome.err,
                  AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\xc2\x9b")), Not(HasSubstr("\r")),
                        Not(HasSubstr("\nforged"))))
          << command[0];
      EXPECT_THAT(outcome.out + outcome.err, HasSubstr("forged")) << command[0];
    }
  }
}

// A valid beginning that announces a billion items, then one item after the other.
class EndlessSnapshot {
 public:
  EndlessSnapshot(const v1::PublicParameters& parameters, const Anchors& anchors) {
    v1::SnapshotCollection head;
    head.set_name("things");
    *head.mutable_parameters() = parameters;
    head.set_items(1'000'000'000);
    EXPECT_TRUE(writer_.Begin(head, anchors).ok());
  }

  std::string Next() {
    while (blocks_.empty()) {
      v1::Item item;
      item.set_id(absl::StrCat(1'000'000'000 + next_++));
      item.set_payload("\"" + std::string(50'000, 'x') + "\"");
      item.mutable_features()->Resize(8, 1);
      EXPECT_TRUE(writer_.Add(std::move(item)).ok());
    }
    v1::SnapshotCollectionResponse piece;
    piece.set_data(blocks_.front());
    blocks_.erase(blocks_.begin());
    return piece.SerializeAsString();
  }

 private:
  std::vector<std::string> blocks_;
  SnapshotWriter writer_{[this](absl::string_view block) {
    blocks_.emplace_back(block);
    return absl::OkStatus();
  }};
  int64_t next_ = 0;
};

TEST_F(EvilServer, EndlessSnapshotDoesNotFillTheDisk) {
  Publish(20, 8, EmbeddingSettings{});
  const std::string file = folder_ / "things.snapshot";
  const auto take = [&](const Command& more) {
    auto snapshot = std::make_shared<EndlessSnapshot>(collection_.parameters(), published_);
    server_.Answer("SnapshotCollection", CannedAnswer{[=](int64_t) { return snapshot->Next(); }});
    const int64_t sent = server_.messages_sent();
    const Outcome outcome = Run(Join({"snapshot", "things", "--out", file, "--json"}, more));
    EXPECT_EQ(outcome.json()["error"]["code"], "RESOURCE_EXHAUSTED") << outcome.out;
    EXPECT_LT(server_.messages_sent() - sent, 100);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("snapshot")));
    }
    return outcome.err;
  };
  // Twice 1,020 rows of 1,032 bytes and a megabyte.
  EXPECT_THAT(take({}), AllOf(HasSubstr("--max-bytes must be at least"), HasSubstr("but is 4")));
  EXPECT_THAT(take({"--max-bytes", "2M"}), HasSubstr("but is 2000000 (as given)"));
}

// A relay that tampers with the daemon's answers. No answer may crash the client, or make what it
// sends next depend on the target's slot.
class Relay final : public v1::RetrievalService::Service {
 public:
  explicit Relay(AdminClient daemon) : daemon_(std::move(daemon)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status GetCollection(grpc::ServerContext*, const v1::GetCollectionRequest* request,
                             v1::GetCollectionResponse* response) override {
    *response = *daemon_.GetCollection(request->collection());
    return grpc::Status::OK;
  }

  grpc::Status GetAnchors(grpc::ServerContext*, const v1::GetAnchorsRequest* request,
                          grpc::ServerWriter<v1::GetAnchorsResponse>* writer) override {
    const auto chunks = daemon_.GetAnchors(request->collection(), request->fingerprint());
    for (const v1::GetAnchorsResponse& chunk : *chunks) {
      writer->Write(chunk);
    }
    return grpc::Status::OK;
  }

  grpc::Status Retrieve(grpc::ServerContext*, const v1::RetrieveRequest* request,
                        v1::RetrieveResponse* response) override {
    ++retrievals;
    *response = *daemon_.Retrieve(*request);
    tamper(response);
    return retrieve_status;
  }

  std::function<void(v1::RetrieveResponse*)> tamper = [](auto*) {};
  grpc::Status retrieve_status;
  int retrievals = 0;

 private:
  AdminClient daemon_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class HostileServer : public FilledService {
 protected:
  void SetUp() override {
    FilledService::SetUp();
    relay_ = std::make_unique<Relay>(Connect());
    user_.flags = {"--server", relay_->address(), "--insecure"};
  }

  Command Batch(const Command& more = {}) const {
    return Query(Join(
        {"--rows", "0,1,2", "--labels", Labels("queries"), "--epsilon", "1", "--delta", "1e-5"},
        more));
  }

  Outcome RunWithJson(const Command& command) const { return Run(Join(command, {"--json"})); }

  std::unique_ptr<Relay> relay_;
};

TEST_F(HostileServer, PayloadsThatFillTheMemoryAsJsonAreRefused) {
  std::string many = "[{}";
  for (int i = 1; i < (1 << 20); ++i) many += ",{}";  // 3 MB, as JSON some 80
  relay_->tamper = [&](v1::RetrieveResponse* response) {
    response->mutable_slots(0)->mutable_matches(0)->set_payload(many + "]");
  };
  const Command query = Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5",
                               "--payloads", "--max-memory", "150M"});
  const Outcome outcome = RunWithJson(query);
  EXPECT_EQ(outcome.json()["error"]["code"], "RESOURCE_EXHAUSTED") << outcome.out.substr(0, 500);
  EXPECT_THAT(outcome.err, HasSubstr("--max-memory"));
  EXPECT_LT(outcome.peak_memory, int64_t{200} << 20);
  EXPECT_EQ(Run({"resend", "--label", "0", "--max-memory", "150M"}).exit_code, 1);
  EXPECT_EQ(Run({"resend", "--label", "0", "--max-memory", "1G"}).exit_code, 0);
}

TEST_F(HostileServer, FailedBatchIsSentToItsEndAndItsLastReleaseAgainAtNoCost) {
  relay_->retrieve_status = grpc::Status(grpc::StatusCode::INTERNAL, "not now");
  EXPECT_EQ(RunWithJson(Batch()).json()["error"]["code"], "INTERNAL");
  EXPECT_EQ(relay_->retrievals, 3) << "another query may be answered";
  const json spent = Budget();
  relay_->retrieve_status = grpc::Status::OK;
  EXPECT_THAT(Answer({"resend", "--label", "0"})["matches"], SizeIs(8));
  EXPECT_EQ(Budget(), spent);
  // A damaged answer leaves the others readable.
  relay_->retrievals = 0;
  relay_->tamper = [&](v1::RetrieveResponse* response) {
    if (relay_->retrievals == 2) response->clear_slots();
  };
  const Outcome outcome = RunWithJson(Batch());
  ASSERT_THAT(outcome.lines(), SizeIs(3)) << outcome.out;
  EXPECT_THAT(outcome.lines()[1]["query"].get<std::string>(), HasSubstr("row 2"));
  EXPECT_THAT(outcome.lines()[2]["error"]["message"].get<std::string>(),
              HasSubstr("1 of 3 queries failed; the first, " + Vectors("queries") + " row 1: "));
}

}  // namespace
}  // namespace privatemail::e2e
