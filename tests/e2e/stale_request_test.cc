// Requests that the command line does not send, refused by the daemon.
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
    const JointClient client = *JointClient::Create(
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

TEST_F(StaleRequest, InvalidReleaseIsRefused) {
  const FloatMatrix release = *FromProto("release", request_.release());
  FloatMatrix collinear = release;
  collinear.col(1) = 2 * collinear.col(0);
  ToProto(collinear, request_.mutable_release());
  EXPECT_THAT(transport_->Retrieve(request_), FailsWith(absl::StatusCode::kFailedPrecondition,
                                                        "relative residual of the best fit: "));
  ToProto(FloatMatrix(release.topRows(44)), request_.mutable_release());
  EXPECT_THAT(transport_->Retrieve(request_), FailsWith(absl::StatusCode::kInvalidArgument));
}

// Sent without the SDK, which checks the limit itself.
TEST_F(StaleRequest, OversizedMessageIsRefused) {
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
