// Requests that no command line would send: prepared through the SDK, refused by the real daemon.
#include <grpcpp/grpcpp.h>

#include "common/rpc/status.h"
#include "common/wire/codec.h"
#include "privatemail/joint_client.h"
#include "privatemail/transport.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "tests/e2e/service.h"
#include "tests/testing/matchers.h"

namespace privatemail::e2e {
namespace {

using ::testing::HasSubstr;

class StaleRequest : public FilledService {
 protected:
  void SetUp() override {
    FilledService::SetUp();
    transport_ = Connect();
    collection_ = *transport_->GetCollection("things");
    const RetrievalClient client = *RetrievalClient::Create(
        collection_, *transport_->GetAnchors("things", collection_.fingerprint()));
    const std::unique_ptr<Ledger> ledger = *Ledger::Open(folder_ / "sdk.sqlite");
    ASSERT_THAT(ledger->Grant(client.parameters().collection_uuid, {100, .1}), IsOk());
    const Labelled queries = SeparatedClasses(1, 3);
    SecureBits bits;
    request_ = client
                   .Prepare({queries.vectors.row(0), queries.labels[0]},
                            {.cost = {.epsilon = 1, .delta = 1e-5}}, *ledger, bits)
                   ->request;
    ASSERT_THAT(transport_->Retrieve(request_), IsOk());
  }

  std::optional<Transport> transport_;
  v1::GetCollectionResponse collection_;
  v1::RetrieveRequest request_;
};

TEST_F(StaleRequest, IsRefusedOnceTheCollectionIsAnotherOne) {
  const std::string old_fingerprint = Info()["digest"];
  Answer({"collection", "delete", "things"});
  EXPECT_THAT(transport_->Retrieve(request_),
              FailsWith(absl::StatusCode::kNotFound, "collection things does not exist"));
  CreateCollection(3);
  Fill();
  Build();
  const std::string mismatch = "fingerprint mismatch: the collection's public parameters are " +
                               Info()["digest"].get<std::string>() +
                               ", the request was prepared for " + old_fingerprint;
  const nlohmann::json before = Everything();
  EXPECT_THAT(transport_->Retrieve(request_),
              FailsWith(absl::StatusCode::kFailedPrecondition, mismatch));
  EXPECT_THAT(transport_->GetAnchors("things", collection_.fingerprint()),
              FailsWith(absl::StatusCode::kFailedPrecondition, mismatch));
  EXPECT_EQ(Everything(), before);
}

TEST_F(StaleRequest, WithCollinearAnchorsIsRefusedWithTheResidual) {
  FloatMatrix release = *FromProto("release", request_.release());
  release.col(1) = 2 * release.col(0);
  ToProto(release, request_.mutable_release());
  const auto refused = transport_->Retrieve(request_);
  EXPECT_THAT(refused, FailsWith(absl::StatusCode::kFailedPrecondition, "alignment refused"));
  EXPECT_THAT(std::string(refused.status().message()),
              ::testing::ContainsRegex("relative residual of the best fit: [0-9.]+"));
}

TEST_F(StaleRequest, OfAnotherShapeIsRefused) {
  const FloatMatrix release = *FromProto("release", request_.release());
  ToProto(FloatMatrix(release.topRows(44)), request_.mutable_release());
  EXPECT_THAT(transport_->Retrieve(request_),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "release has the wrong dimension: expected 45 x 2, got 44 x 2"));
}

// By a client that does not keep to the limit itself.
TEST_F(StaleRequest, OverTheLimitOfAMessageIsRefused) {
  ToProto(FloatMatrix(FloatMatrix::Ones(1 << 12, (1 << 12) + 1)), request_.mutable_release());
  const auto channel = grpc::CreateChannel(daemon_->address(), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  v1::RetrieveResponse response;
  const absl::Status refused =
      FromGrpc(v1::RetrievalService::NewStub(channel)->Retrieve(&context, request_, &response));
  EXPECT_THAT(refused, FailsWith(absl::StatusCode::kResourceExhausted, "67108864"));
  EXPECT_EQ(Info()["items"], kItems);
}

}  // namespace
}  // namespace privatemail::e2e
