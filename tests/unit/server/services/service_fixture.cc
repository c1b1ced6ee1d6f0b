#include "tests/unit/server/services/service_fixture.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/wire/proto_conversions.h"
#include "tests/unit/server/daemon/http_client.h"
#include "tests/unit/server/snapshots.h"

namespace privatemail::testing {

std::shared_ptr<grpc::Channel> Connect(
    const HostPort& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetMaxReceiveMessageSize(-1);
  // Otherwise channels to the same address share connections with other credentials.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address.ToString(), credentials, arguments);
}

void ServiceTest::Serve(DaemonOptions options) {
  daemon_.reset();
  options.data_directory = directory_.path();
  options.listen = "127.0.0.1:0";
  options.insecure = true;
  options.auto_build_share = 0;  // embedding versions count the builds of the test
  auto daemon = DaemonServer::Start(options);
  EXPECT_THAT(daemon, IsOk());
  daemon_ = *std::move(daemon);
  const auto channel = Connect(daemon_->address(), grpc::InsecureChannelCredentials());
  collections_ = v1::CollectionsService::NewStub(channel);
  retrieval_ = v1::RetrievalService::NewStub(channel);
}

v1::CreateCollectionRequest ServiceTest::Fruit() {
  v1::CreateCollectionRequest request;
  request.set_name("fruit");
  request.set_metric(v1::METRIC_COSINE);
  ToProto(SmallSettings(), request.mutable_settings());
  const Anchors anchors = SmallAnchors();
  ToProto(anchors.features, request.mutable_anchors());
  request.mutable_anchor_labels()->Assign(anchors.labels.begin(), anchors.labels.end());
  request.set_extractor("vectors");
  return request;
}

v1::CreateCollectionRequest ServiceTest::SlowFruit() {
  v1::CreateCollectionRequest request = Fruit();
  request.mutable_settings()->set_steps(10000);
  request.mutable_settings()->set_label_graph(v1::LABEL_GRAPH_BALANCED);  // never coincides
  request.mutable_settings()->set_start(v1::START_CLASSES);
  return request;
}

v1::CreateCollectionRequest ServiceTest::Notes() {
  v1::CreateCollectionRequest request;
  request.set_name("notes");
  request.set_metric(v1::METRIC_COSINE);
  request.set_extractor("vectors");
  return request;
}

v1::Item ServiceTest::ItemMessage(const Item& item) {
  v1::Item message;
  message.set_id(item.id);
  message.set_label(item.label);
  message.mutable_features()->Assign(item.features.begin(), item.features.end());
  message.set_payload(item.payload);
  return message;
}

std::string ServiceTest::SnapshotBytes(int items) {
  SnapshotContents contents = {SmallCollection("fruit"), GalleryOf(MakeItems(items, 1))};
  contents.collection.items = static_cast<uint64_t>(items);
  return BytesOf(contents);
}

v1::UpsertItemsRequest ServiceTest::Message(const std::string& collection,
                                            const std::vector<Item>& items) {
  v1::UpsertItemsRequest message;
  message.set_collection(collection);
  for (const Item& item : items) *message.add_items() = ItemMessage(item);
  return message;
}

absl::StatusOr<v1::DeleteCollectionResponse> ServiceTest::DeleteCollection(
    const std::string& name, absl::Duration deadline) const {
  v1::DeleteCollectionRequest request;
  request.set_name(name);
  return Ask(collections_.get(), &Collections::DeleteCollection, request, deadline);
}

absl::StatusOr<v1::GetItemsResponse> ServiceTest::GetItems(
    const std::string& collection, const std::vector<std::string>& ids) const {
  v1::GetItemsRequest request;
  request.set_collection(collection);
  request.mutable_ids()->Assign(ids.begin(), ids.end());
  return Ask(collections_.get(), &Collections::GetItems, request);
}

absl::StatusOr<v1::DeleteItemsResponse> ServiceTest::DeleteItems(
    const std::string& collection, const std::vector<std::string>& ids) const {
  v1::DeleteItemsRequest request;
  request.set_collection(collection);
  request.mutable_ids()->Assign(ids.begin(), ids.end());
  return Ask(collections_.get(), &Collections::DeleteItems, request);
}

std::vector<nlohmann::json> ServiceTest::Audited(const std::string& rpc) const {
  std::vector<nlohmann::json> calls = CallsIn(directory_ / "audit.jsonl");
  std::erase_if(calls, [&](const nlohmann::json& call) { return call["rpc"] != rpc; });
  return calls;
}

double ServiceTest::Metric(const std::string& metric) const {
  const std::string page = HttpGet(daemon_->http_address(), "/metrics");
  const std::string line = absl::StrCat("\n", metric, " ");
  const size_t at = page.find(line);
  return at == std::string::npos ? 0 : std::atof(page.c_str() + at + line.size());
}

absl::Status ServiceTest::Retrieve(const v1::GetCollectionResponse& fruit, uint32_t k,
                                   bool with_payloads) const {
  v1::RetrieveRequest request;
  request.set_collection(fruit.name());
  request.set_fingerprint(fruit.fingerprint());
  ToProto(FloatMatrix::Random(3 + 12, 2).eval(), request.mutable_release());
  request.set_k(k);
  request.set_with_payloads(with_payloads);
  return Ask(retrieval_.get(), &Retrieval::Retrieve, request).status();
}

v1::GetCollectionResponse ServiceTest::MakeFruit(int items, bool build) {
  const auto created = Create(Fruit());
  EXPECT_THAT(created, IsOk());
  v1::UpsertItemsResponse totals;
  std::vector<Item> batch = MakeItems(items, 1);
  for (Item& item : batch) item.payload = "{\"file\":\"" + item.id + ".png\"}";
  constexpr ptrdiff_t kOfMessage = 500;
  std::vector<v1::UpsertItemsRequest> messages;
  auto first = batch.begin();
  do {
    const auto last = first + std::min(kOfMessage, batch.end() - first);
    messages.push_back(Message("fruit", {first, last}));
    first = last;
  } while (first != batch.end());
  EXPECT_THAT(Upsert(messages, &totals), IsOk());
  if (!build) return created->collection();
  std::vector<v1::BuildEmbeddingResponse> progress;
  EXPECT_THAT(Build("fruit", &progress), IsOk());
  return progress.back().collection();
}

absl::Status ServiceTest::Upsert(const std::vector<v1::UpsertItemsRequest>& messages,
                                 v1::UpsertItemsResponse* response) {
  grpc::ClientContext context;
  v1::UpsertItemsResponse totals;
  const auto writer = collections_->UpsertItems(&context, response == nullptr ? &totals : response);
  for (const v1::UpsertItemsRequest& message : messages) {
    if (!writer->Write(message)) break;  // the status says why
  }
  writer->WritesDone();
  return FromGrpc(writer->Finish());
}

absl::Status ServiceTest::Build(const std::string& collection,
                                std::vector<v1::BuildEmbeddingResponse>* progress) {
  grpc::ClientContext context;
  v1::BuildEmbeddingRequest request;
  request.set_collection(collection);
  const auto reader = collections_->BuildEmbedding(&context, request);
  v1::BuildEmbeddingResponse message;
  while (reader->Read(&message)) {
    if (progress != nullptr) progress->push_back(message);
  }
  return FromGrpc(reader->Finish());
}

v1::ListCollectionsResponse ServiceTest::ListAll() const {
  const auto list = Ask(collections_.get(), &Collections::ListCollections, {});
  EXPECT_THAT(list, IsOk());
  return *list;
}

v1::GetCollectionResponse ServiceTest::Get(const std::string& collection) const {
  v1::GetCollectionRequest request;
  request.set_collection(collection);
  request.set_with_changes(true);
  const auto response = Ask(retrieval_.get(), &Retrieval::GetCollection, request);
  EXPECT_THAT(response, IsOk());
  return *response;
}

}  // namespace privatemail::testing
