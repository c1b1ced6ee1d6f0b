// Fixture: a daemon in this process and a client of it.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_SERVICE_FIXTURE_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_SERVICES_SERVICE_FIXTURE_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "privatemail/v1/collections.grpc.pb.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "server/daemon/server.h"
#include "tests/unit/server/fixtures.h"
#include "tests/unit/server/services/daemon_state.h"

namespace privatemail::testing {

// Serves an empty data directory in plaintext on a free loopback port. Metrics need options.http,
// which makes the end take 2 s.
class ServiceTest : public ::testing::Test {
 public:
  static v1::CreateCollectionRequest Fruit();
  static v1::Item ItemMessage(const Item& item);
  static v1::UpsertItemsRequest Message(const std::string& collection,
                                        const std::vector<Item>& items);
  // A snapshot of a collection like Fruit() with MakeItems(items, 1) and a new UUID.
  static std::string SnapshotBytes(int items);

 protected:
  // Overrides data directory, address and TLS of the options.
  explicit ServiceTest(DaemonOptions options = {});

  absl::Status Create(const v1::CreateCollectionRequest& request) const;
  // The audited calls of this RPC, in order.
  std::vector<nlohmann::json> Audited(const std::string& rpc) const;
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
