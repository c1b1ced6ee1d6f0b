// A relay that tampers with the daemon's answers. No answer may crash the client, or make what it
// sends next depend on the target's slot.
#include <grpcpp/grpcpp.h>

#include <functional>

#include "privatemail/v1/retrieval.grpc.pb.h"
#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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

TEST_F(HostileServer, DamagedSlotDoesNotStopABatch) {
  for (int slot = 0; slot < kClasses; ++slot) {
    relay_->retrievals = 0;
    relay_->tamper = [&](v1::RetrieveResponse* response) {
      response->mutable_slots(slot)->mutable_matches(0)->set_payload("{");
    };
    const Outcome outcome = RunWithJson(Batch());
    EXPECT_EQ(relay_->retrievals, 3) << "when slot " << slot << " is spoilt";
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.json()["error"]["code"], "DATA_LOSS");
    EXPECT_THAT(outcome.err, HasSubstr("3 of 3 queries failed; the first, "));
  }
}

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

// The message says what was charged and how to resend it; the rest is not charged.
TEST_F(HostileServer, RefusalOfEveryQueryEndsABatch) {
  const int before = Budget()["releases"];
  int sent = 0;
  for (const auto code :
       {grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::UNAUTHENTICATED,
        grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::FAILED_PRECONDITION}) {
    relay_->retrieve_status = grpc::Status(code, "not you");
    const Outcome outcome = RunWithJson(Batch());
    EXPECT_EQ(relay_->retrievals, ++sent);
    EXPECT_EQ(Budget()["releases"], before + sent);
    EXPECT_EQ(outcome.exit_code, 1);
    const std::string message =
        "1 of 3 queries failed; the first, " + Vectors("queries") +
        " row 0: not you; epsilon 1 was spent for it; `resend` sends the "
        "last of these releases again at no cost; 2 more were not sent and cost nothing";
    EXPECT_EQ(outcome.json()["error"]["message"], message);
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
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
