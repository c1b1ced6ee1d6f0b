// Fixture: a daemon in this process and a client of it.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_SERVICE_FIXTURE_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_SERVICE_FIXTURE_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/status.h"
#include "privatemail/v1/collections.grpc.pb.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "server/daemon/server.h"
#include "tests/unit/server/fixtures.h"
#include "tests/unit/server/services/daemon_state.h"

namespace privatemail::testing {

// One call of a stub, with a request and an answer.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Ask(
    Stub* stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    const std::type_identity_t<Request>& request, absl::Duration deadline = absl::Minutes(10)) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  Response response;
  const absl::Status status = FromGrpc((stub->*method)(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

// Serves an empty data directory in plaintext on a free loopback port. Metrics need options.http,
// which makes the end take 2 s.
class ServiceTest : public ::testing::Test {
 public:
  using Collections = v1::CollectionsService::Stub;
  using Retrieval = v1::RetrievalService::Stub;

  static v1::CreateCollectionRequest Fruit();
  // Its build takes minutes unless it is stopped.
  static v1::CreateCollectionRequest SlowFruit();
  // A collection without anchors.
  static v1::CreateCollectionRequest Notes();
  static v1::Item ItemMessage(const Item& item);
  static v1::UpsertItemsRequest Message(const std::string& collection,
                                        const std::vector<Item>& items);
  // A snapshot of a collection like Fruit() with MakeItems(items, 1) and a new UUID.
  static std::string SnapshotBytes(int items);

 protected:
  // Overrides data directory, address and TLS of the options.
  explicit ServiceTest(DaemonOptions options = {}) { Serve(std::move(options)); }
  // Starts the daemon again, with other options and the same data directory.
  void Serve(DaemonOptions options);

  absl::StatusOr<v1::CreateCollectionResponse> Create(
      const v1::CreateCollectionRequest& request) const {
    return Ask(collections_.get(), &Collections::CreateCollection, request);
  }
  absl::Status List(absl::Duration deadline = absl::Seconds(20)) const {
    return Ask(collections_.get(), &Collections::ListCollections, {}, deadline).status();
  }
  absl::StatusOr<v1::DeleteCollectionResponse> DeleteCollection(
      const std::string& name, absl::Duration deadline = absl::Minutes(1)) const;
  absl::StatusOr<v1::GetItemsResponse> GetItems(const std::string& collection,
                                                const std::vector<std::string>& ids) const;
  absl::StatusOr<v1::DeleteItemsResponse> DeleteItems(const std::string& collection,
                                                      const std::vector<std::string>& ids) const;
  // The audited calls of this RPC, in order.
  std::vector<nlohmann::json> Audited(const std::string& rpc) const;
  // "privatemail_requests_queued" or with labels; 0 if it is absent.
  double Metric(const std::string& metric) const;
  // Searches a collection like Fruit() with a random release.
  absl::Status Retrieve(const v1::GetCollectionResponse& fruit, uint32_t k,
                        bool with_payloads = false) const;
  // Creates `fruit` with items and, if `build`, its embedding.
  v1::GetCollectionResponse MakeFruit(int items, bool build);
  absl::Status Upsert(const std::vector<v1::UpsertItemsRequest>& messages,
                      v1::UpsertItemsResponse* response = nullptr);
  absl::Status Build(const std::string& collection,
                     std::vector<v1::BuildEmbeddingResponse>* progress = nullptr);
  // Calls that are expected to succeed.
  v1::ListCollectionsResponse ListAll() const;
  v1::GetCollectionResponse Get(const std::string& collection) const;

  const TemporaryFolder directory_;
  std::unique_ptr<DaemonServer> daemon_;
  std::unique_ptr<v1::CollectionsService::Stub> collections_;
  std::unique_ptr<v1::RetrievalService::Stub> retrieval_;
};

// A channel without message limits of its own.
std::shared_ptr<grpc::Channel> Connect(
    const HostPort& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_SERVICE_FIXTURE_H_
