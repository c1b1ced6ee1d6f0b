#include "tests/unit/server/services/access_fixture.h"

#include <algorithm>

#include "common/rpc/status.h"

namespace privatemail::testing {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

void AccessTest::SetUp() {
  MakeAuthority(folder_.path(), "authority");
  MakeAuthority(folder_.path(), "stranger");
  MakeClient(folder_.path(), "member", "authority", 2);
  MakeClient(folder_.path(), "outsider", "stranger", 2);
  MakeClient(folder_.path(), "late", "authority", -1);
  options_.data_directory = folder_ / "data";
  options_.listen = "127.0.0.1:0";
  options_.client_ca = folder_ / "authority.crt";
  ASSERT_OK_AND_ASSIGN(auto daemon, DaemonServer::Start(options_));
  daemon_ = std::move(daemon);
  admin_ = AdminKeyIn(folder_ / "data");
  ASSERT_THAT(Try("CreateCollection", "fruit", admin_), IsOk());
  ASSERT_THAT(Try("CreateCollection", "fish", admin_), IsOk());
  Put("fruit", MakeItems(6, 1));
  ASSERT_THAT(Try("BuildEmbedding", "fruit", admin_), IsOk());
}

std::shared_ptr<grpc::Channel> AccessTest::Channel(const Credentials& credentials) const {
  return Connect(daemon_->address(), credentials);
}
AccessTest::Credentials AccessTest::Member() const {
  return Presenting(folder_ / "member", daemon_->identity()->certificate_pem);
}
std::shared_ptr<grpc::Channel> AccessTest::ChannelWith(const std::string& key) const {
  return Channel(WithKey(Member(), key));
}

absl::Status AccessTest::Call(const std::shared_ptr<grpc::Channel>& channel,
                              const MethodDescriptor& method, const Message& request) {
  const Answer answer = CallOnce(channel, PathOf(method), {request.SerializeAsString()});
  if (absl::IsUnavailable(answer.status) || absl::IsUnauthenticated(answer.status) ||
      absl::IsPermissionDenied(answer.status)) {
    EXPECT_EQ(answer.messages, 0) << method.name() << " told something before " << answer.status;
  }
  return answer.status;
}

absl::Status AccessTest::Try(const std::string& name, const std::string& collection,
                             const std::string& key) const {
  const std::vector<const MethodDescriptor*> methods = AllMethods();
  const auto found = std::find_if(methods.begin(), methods.end(),
                                  [&](const auto* method) { return method->name() == name; });
  return Call(ChannelWith(key), **found, *RequestFor(**found, collection));
}

void AccessTest::Put(const std::string& collection, const std::vector<Item>& items) const {
  grpc::ClientContext context;
  v1::UpsertItemsResponse totals;
  const auto stub = v1::CollectionsService::NewStub(ChannelWith(admin_));
  const auto writer = stub->UpsertItems(&context, &totals);
  writer->Write(ServiceTest::Message(collection, items));
  writer->WritesDone();
  ASSERT_THAT(FromGrpc(writer->Finish()), IsOk());
}

v1::CreateKeyResponse AccessTest::MakeKey(Scopes scopes,
                                          const std::vector<std::string>& collections,
                                          double requests_per_second) const {
  v1::CreateKeyRequest request;
  request.set_name("test");
  if ((scopes & kSearchScope) != 0) request.add_scopes(v1::KEY_SCOPE_SEARCH);
  if ((scopes & kWriteScope) != 0) request.add_scopes(v1::KEY_SCOPE_WRITE);
  if ((scopes & kAdminScope) != 0) request.add_scopes(v1::KEY_SCOPE_ADMIN);
  for (const std::string& collection : collections) request.add_collections(collection);
  request.set_requests_per_second(requests_per_second);
  const auto stub = v1::KeysService::NewStub(ChannelWith(admin_));
  const auto made = Ask(stub.get(), &v1::KeysService::Stub::CreateKey, request);
  EXPECT_THAT(made, IsOk());
  return *made;
}

std::unique_ptr<Message> AccessTest::RequestFor(const MethodDescriptor& method,
                                                const std::string& collection) const {
  const Rpc& rpc = FindRpc(method.name());
  std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                       ->GetPrototype(method.input_type())
                                       ->New());
  if (method.name() == "CreateCollection") request->CopyFrom(ServiceTest::Fruit());
  if (auto* upsert = dynamic_cast<v1::UpsertItemsRequest*>(request.get())) {
    // Changes those that are there, and adds one.
    for (const Item& item : MakeItems(7, 2)) *upsert->add_items() = ServiceTest::ItemMessage(item);
  }
  if (method.name() == "DeleteItems" || method.name() == "GetItems") {
    request->GetReflection()->AddString(request.get(), method.input_type()->FindFieldByName("ids"),
                                        MakeItems(1, 1)[0].id);
  }
  if (auto* restore = dynamic_cast<v1::RestoreCollectionRequest*>(request.get())) {
    restore->set_data(ServiceTest::SnapshotBytes(3));
  }
  if (auto* page = dynamic_cast<v1::ScrollItemsRequest*>(request.get())) page->set_limit(1);
  if (auto* create = dynamic_cast<v1::CreateKeyRequest*>(request.get())) {
    create->set_name("made");
    create->add_scopes(v1::KEY_SCOPE_ADMIN);
  }
  if (auto* revoke = dynamic_cast<v1::RevokeKeyRequest*>(request.get())) revoke->set_id(victim_);
  if (rpc.collection[0] != '\0') {
    request->GetReflection()->SetString(
        request.get(), method.input_type()->FindFieldByName(rpc.collection), collection);
  }
  return request;
}

std::string AccessTest::TargetOf(const MethodDescriptor& method) {
  if (method.name() == "CreateCollection") return "new";
  return method.name() == "RestoreCollection" ? "restored" : "fruit";
}

std::string AccessTest::Everything() const {
  const auto collections = v1::CollectionsService::NewStub(ChannelWith(admin_));
  const auto keys = v1::KeysService::NewStub(ChannelWith(admin_));
  return Ask(collections.get(), &ServiceTest::Collections::ListCollections, {})->DebugString() +
         Ask(keys.get(), &v1::KeysService::Stub::ListKeys, {})->DebugString();
}

void AccessTest::ExpectAll(const Credentials& credentials,
                           const std::function<absl::StatusCode(const Rpc&)>& expected) {
  const std::string before = Everything();
  for (const MethodDescriptor* method : AllMethods()) {
    const std::string collection = TargetOf(*method);
    const absl::Status status =
        Call(Channel(credentials), *method, *RequestFor(*method, collection));
    EXPECT_EQ(status.code(), expected(FindRpc(method->name()))) << method->name() << ": " << status;
    EXPECT_EQ(Everything(), before) << method->name() << " was executed";
  }
}

}  // namespace privatemail::testing
